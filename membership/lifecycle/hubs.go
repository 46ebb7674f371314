package lifecycle

import (
	"fmt"
	"slices"
	"time"
)

// HubsObserved is the agent's observation of several hubs. A member belongs to one of them at a time.
type HubsObserved struct {
	Now time.Time
	// Hubs in order of preference.
	Hubs []HubStatus
	// Current is the index of the agent's current hub.
	Current int
	// Since is the time at which the agent switched to the current hub; zero: it started there.
	Since time.Time
	// Timeout is how long the agent stays with a hub that does not accept its heartbeats.
	Timeout time.Duration
	// Return is how long the first hub must respond before an agent at another hub returns to it; zero: the agent does
	// not return.
	Return time.Duration
	// Stay is true if the agent must not return to the first hub automatically. The step by which the agent left that hub
	// sets it.
	Stay bool
}

// HubStatus is the state of one hub from the view of the agent.
type HubStatus struct {
	Name string
	// Unserved is the time since which the hub has accepted no heartbeat although one was due; zero: it accepts them. It
	// applies to the current hub only.
	Unserved time.Time
	// Refused is true if the current hub refuses the agent, and only a user can change that: the request is denied, or the
	// agent has no bootstrap credential.
	Refused bool
	// Cleaning is how long the agent may clean up the objects of the current hub; zero: it is not cleaning up.
	Cleaning time.Duration
	// Out is true if the member has left the hub permanently. Unserved is the time since which it has left.
	Out bool
	// Left is the time at which the agent last switched from this hub to another; zero: never.
	Left time.Time
	// Answer is whether the hub responds, as probed in this round.
	Answer HubAnswer
	// Asked is the time of the last probe in any round; zero: never. Answering is the time since which every probe
	// succeeded; zero: the last one failed. [HubStatus.Heard] maintains both.
	Asked, Answering time.Time
}

// Heard returns the state of the hub after a probe.
func (h HubStatus) Heard(answer HubAnswer, now time.Time) HubStatus {
	switch {
	case answer != HubAnswers:
		h.Answering = time.Time{}
	case h.Answering.IsZero() || now.Sub(h.Asked) > 2*ReturnPoll: // the state in between is unknown
		h.Answering = now
	}
	h.Answer, h.Asked = answer, now
	return h
}

// ReturnPoll is the interval between two probes of the first hub by an agent that may return to it.
const ReturnPoll = time.Minute

// HubAnswer is the result of a probe of a hub.
type HubAnswer int

// The results of a probe.
const (
	HubAnswerUnknown HubAnswer = iota // not probed
	HubAnswers
	HubSilent // no response, or no credential for a probe
)

// HubsStep is the next step of an agent with several hubs.
type HubsStep struct {
	// Hub is the index of the desired hub: the current one, or the one to switch to.
	Hub int
	// Ask is true if the agent must probe whether Hub responds, and then decide again.
	Ask bool
	// Stay is the value of HubsObserved.Stay after the switch to another hub. It must survive restarts.
	Stay bool
	// Message is the reason why the agent switches to another hub, or stays at a hub that does not accept its heartbeats.
	Message string
	// After is the time until the next decision if no observation changes; zero: never.
	After time.Duration
	// Done is true if the member has left all hubs permanently.
	Done bool
}

// SelectHub decides which of its hubs an agent uses.
//
// An agent switches to another hub if the current one has accepted no heartbeat for Timeout, refuses the agent, or has
// deregistered the member. It switches no sooner than Timeout after the last switch, except from a hub that has
// deregistered the member. It switches only to a hub that responds: an agent that reaches no hub stays at its hub.
// Among the hubs that respond it selects the hub that it left the longest ago, and hubs that it never left in the
// order of the list. It stays there, also when a hub that is earlier in the list responds again, unless Return is set.
//
// With Return, the agent returns to the first hub if the current hub accepts its heartbeats, it has been there for
// Timeout, and the first hub has responded to every probe for as long as Return, counted from when the agent last left
// it. A response of the API server does not mean that the hub accepts the agent. Therefore the agent does not return
// to a first hub that it left although that hub responded, or that refused or deregistered it: otherwise the agent
// would switch back and forth forever. It then uses the first hub again only if another hub is lost, refuses the agent
// or deregisters the member.
//
// The agent leaves a hub whose member is being cleaned up only after the clean-up has exceeded its time limit.
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
					// If another hub responds, the earlier responses of this hub do not apply any more.
					return HubsStep{Hub: o.Current, Ask: true}
				}
			}
			return HubsStep{
				Hub:     i,
				Stay:    stay && i != 0,
				Message: fmt.Sprintf("Switching to hub %s: hub %s %s.", o.Hubs[i].Name, current.Name, why),
			}
		default: // HubSilent
		}
	}
	step.Message = fmt.Sprintf("Hub %s %s, and no other hub responds.", current.Name, why)
	step.After = growing(RetryPoll, due, o.Now)
	return step
}

// back decides whether an agent whose hub accepts it returns to the first hub.
func (o HubsObserved) back(step HubsStep) HubsStep {
	first := o.Hubs[0]
	if o.Return <= 0 || o.Stay || o.Current == 0 || first.Out || o.Hubs[o.Current].Cleaning > 0 {
		return step
	}
	look := first.Asked.Add(ReturnPoll)
	if !first.Answering.IsZero() {
		due := latest(latest(first.Answering, first.Left).Add(o.Return), o.Since.Add(o.Timeout))
		if first.Answer == HubAnswers && !o.Now.Before(due) {
			step.Hub, step.Message = 0, fmt.Sprintf(
				"Returning to hub %s, which has responded since %s.", first.Name, first.Answering.UTC().Format(time.RFC3339))
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
	default: // it was probed a moment ago, and the agent could not go there yet
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

// others returns the hubs that the agent can switch to, in order of preference.
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

// due returns the time at which to leave the current hub, and the reason. An empty reason means that the agent stays.
func (o HubsObserved) due() (time.Time, string) {
	current := o.Hubs[o.Current]
	switch {
	case current.Out:
		return current.Unserved, "has released this member"
	case current.Refused && current.Cleaning == 0 && o.Since.IsZero():
		return o.Now, "refuses the agent"
	case current.Refused && current.Cleaning == 0:
		return o.Since.Add(o.Timeout), "refuses the agent"
	case !current.Unserved.IsZero():
		since := current.Unserved
		if o.Since.After(since) {
			since = o.Since
		}
		return since.Add(
			max(o.Timeout, current.Cleaning),
		), "has accepted no heartbeat since " + current.Unserved.UTC().Format(time.RFC3339)
	default:
		return time.Time{}, ""
	}
}
