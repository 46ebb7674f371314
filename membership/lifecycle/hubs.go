package lifecycle

import (
	"fmt"
	"slices"
	"time"
)

// HubsObserved is what is known of several hubs, of which a member is in one at a time.
type HubsObserved struct {
	Now time.Time
	// Hubs in the order in which they are taken at first.
	Hubs []HubStanding
	// Current is the index of the one that the agent is at.
	Current int
	// Since is when it came there from another hub; zero: it was there from the start.
	Since time.Time
	// Patience is how long the agent stays with a hub that does not take it.
	Patience time.Duration
	// Return is for how long the first hub is to have answered before an agent that is at another goes back to it; zero: it does not go back.
	Return time.Duration
	// Stay is true when the agent is not to go back to the first hub by itself, as the step said by which it left that.
	Stay bool
}

// HubStanding is how one hub stands with the agent.
type HubStanding struct {
	Name string
	// Unserved is since when the hub has taken no heartbeat though one was due; zero: it takes them. Only of the current one.
	Unserved time.Time
	// Refused is true when the current hub lets the agent in no more, and it takes a person to change that: it has denied the request, or the
	// agent has nothing to ask it with.
	Refused bool
	// Cleaning is how long the agent may be cleaning up what is of the current hub; zero: it is not.
	Cleaning time.Duration
	// Out is true when the member is out of the hub for good: it has been since Unserved.
	Out bool
	// Left is when the agent last went from there to another; zero: never.
	Left time.Time
	// Answer is whether there is a hub that answers, as asked in this round.
	Answer HubAnswer
	// Asked is when that was last asked, in whatever round, and Answering since when the answer has been yes each time. Zero: never; it was no.
	// [HubStanding.Heard] keeps both.
	Asked, Answering time.Time
}

// Heard is the standing of a hub that was asked whether it answers.
func (h HubStanding) Heard(answer HubAnswer, now time.Time) HubStanding {
	switch {
	case answer != HubAnswers:
		h.Answering = time.Time{}
	case h.Answering.IsZero() || now.Sub(h.Asked) > 2*ReturnPoll: // nobody knows how it was meanwhile
		h.Answering = now
	}
	h.Answer, h.Asked = answer, now
	return h
}

// ReturnPoll is the time between two looks at the first hub by an agent that would go back to it.
const ReturnPoll = time.Minute

// HubAnswer is whether a hub answers.
type HubAnswer int

// The answers.
const (
	HubAnswerUnknown HubAnswer = iota // not asked
	HubAnswers
	HubSilent // or there is nothing to ask it with
)

// HubsStep is what an agent of several hubs does next.
type HubsStep struct {
	// Hub is the index of the hub to be at: the current one, or the one to go to.
	Hub int
	// Ask is true when the agent is to find out whether Hub answers, and to ask anew with that.
	Ask bool
	// Stay is what goes into HubsObserved from the time that the agent is at another Hub, and is to outlive restarts.
	Stay bool
	// Message says why the agent goes, or why it stays where it is not taken.
	Message string
	// After is when to look again although nothing has happened; zero: never.
	After time.Duration
	// Done is true when the member is out of all hubs for good.
	Done bool
}

// SelectHub decides which of its hubs an agent is at. It goes to another when the current one has taken no heartbeat for the patience, or
// refuses it, or is done with it; and no sooner than the patience after it came, but from a hub that is done with it. It only goes where a hub answers:
// an agent that is cut off from all of them stays where it is. Of those that answer it takes the one that it left the longest ago, in
// the order of the list where it left none; and it stays there, also when one that is earlier in the list is back, unless it is to return.
//
// An agent that is to return goes back to the first hub when its own takes it, it has been there for the patience, and the first has answered
// each time that it was asked for as long as Return says, which is counted from when the agent was last there. That an API server answers is not that the hub takes
// the agent. So it does not go back to a first hub that it left although that answered, or that had refused it or was done with it: it would be sent away again,
// and so on for ever. It goes back no more then, but when another hub is lost or sends it there.
//
// A hub whose member is being cleaned up is left only when that has taken longer than it may.
func SelectHub(o HubsObserved) HubsStep {
	current, others := o.Hubs[o.Current], o.others()
	step := HubsStep{Hub: o.Current}
	due, why := o.due()
	switch {
	case why == "":
		return o.back(step)
	case len(others) == 0:
		step.Done = current.Out
		return step
	case o.Now.Before(due):
		step.After = due.Sub(o.Now)
		return step
	}
	for _, i := range others {
		switch o.Hubs[i].Answer {
		case HubAnswerUnknown:
			return HubsStep{Hub: i, Ask: true}
		case HubAnswers:
			stay := o.Stay
			if o.Current == 0 {
				stay = current.Refused || current.Out || current.Answer == HubAnswers
				if !stay && o.Return > 0 && current.Answer == HubAnswerUnknown {
					return HubsStep{Hub: o.Current, Ask: true} // whose answers are worth nothing from now on, if this is one
				}
			}
			return HubsStep{Hub: i, Stay: stay && i != 0, Message: fmt.Sprintf("Going to hub %s: hub %s %s.", o.Hubs[i].Name, current.Name, why)}
		default: // not that one
		}
	}
	step.Message = fmt.Sprintf("Hub %s %s, and no other hub answers.", current.Name, why)
	step.After = growing(RetryPoll, due, o.Now)
	return step
}

// back decides whether an agent that its hub takes goes back to the first one.
func (o HubsObserved) back(step HubsStep) HubsStep {
	first := o.Hubs[0]
	if o.Return <= 0 || o.Stay || o.Current == 0 || first.Out || o.Hubs[o.Current].Cleaning > 0 {
		return step
	}
	look := first.Asked.Add(ReturnPoll)
	if !first.Answering.IsZero() {
		due := latest(latest(first.Answering, first.Left).Add(o.Return), o.Since.Add(o.Patience))
		if first.Answer == HubAnswers && !o.Now.Before(due) {
			step.Hub, step.Message = 0, fmt.Sprintf("Going back to hub %s, which has answered since %s.", first.Name, first.Answering.UTC().Format(time.RFC3339))
			return step
		}
		if due.Before(look) {
			look = due
		}
	}
	switch {
	case o.Now.Before(look):
		step.After = look.Sub(o.Now)
	case first.Answer == HubAnswerUnknown:
		step.Hub, step.Ask = 0, true
	default: // it was asked a moment ago, and could not be gone to all the same
		step.After = ReturnPoll
	}
	return step
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// others are the hubs that the agent could go to, in the order in which it would.
func (o HubsObserved) others() []int {
	var others []int
	for i, hub := range o.Hubs {
		if i != o.Current && !hub.Out {
			others = append(others, i)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return o.Hubs[a].Left.Compare(o.Hubs[b].Left) })
	return others
}

// due is when to leave the current hub, and why; "": there is no reason to.
func (o HubsObserved) due() (time.Time, string) {
	current := o.Hubs[o.Current]
	switch {
	case current.Out:
		return current.Unserved, "is done with this member"
	case current.Refused && current.Cleaning == 0 && o.Since.IsZero():
		return o.Now, "does not let the agent in"
	case current.Refused && current.Cleaning == 0:
		return o.Since.Add(o.Patience), "does not let the agent in"
	case !current.Unserved.IsZero():
		since := current.Unserved
		if o.Since.After(since) {
			since = o.Since
		}
		return since.Add(max(o.Patience, current.Cleaning)), "has taken no heartbeat since " + current.Unserved.UTC().Format(time.RFC3339)
	default:
		return time.Time{}, ""
	}
}
