package agent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
)

// begin determines the current hub of the agent: the hub of the record with the highest turn, or the first hub.
func (h *hubs) begin(ctx context.Context) error {
	for i := range h.Hubs {
		r, err := h.record(ctx, i)
		if err != nil {
			return err
		}
		if r.Turn > h.at.turn {
			// The agent once came there from another hub. The time is unknown, so it may have been just now.
			h.at.turn, h.at.hub, h.at.since, h.at.stays = r.Turn, i, h.Clock.Now(), r.Stay
		}
	}
	return nil
}

// record reads the record of a hub. It ignores an invalid record, which the agent of that hub reports.
func (h *hubs) record(ctx context.Context, i int) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	data, err := h.Hubs[i].Store.Load(ctx)
	if err != nil {
		return record{}, fmt.Errorf("hub %s: %w", h.Hubs[i].Name, err)
	}
	r, _ := parseRecord(data)
	return r, nil
}

// choose selects the hub, and records a change before it returns.
func (h *hubs) choose(ctx context.Context) lifecycle.HubsStep {
	now := h.Clock.Now()
	for i := range h.statuses {
		h.statuses[i].Answer = lifecycle.HubAnswerUnknown
	}
	for {
		step := lifecycle.SelectHub(lifecycle.HubsObserved{
			Now: now, Hubs: h.statuses, Current: h.at.hub, Since: h.at.since, Timeout: h.at.timeLimit, Return: h.at.returns,
			Stay: h.at.stays,
		})
		switch {
		case ctx.Err() != nil:
			return lifecycle.HubsStep{Hub: h.at.hub}
		case step.Ask:
			answer := lifecycle.HubSilent
			if h.answers(ctx, step.Hub) {
				answer = lifecycle.HubAnswers
			}
			h.statuses[step.Hub] = h.statuses[step.Hub].Heard(answer, now)
			continue
		case step.Hub == h.at.hub:
			return step
		}
		err := h.turnTo(ctx, step)
		if err == nil {
			return step
		}
		h.log.Error(err, "Cannot record the change to another hub", "hub", h.Hubs[step.Hub].Name)
		h.statuses[step.Hub].Answer = lifecycle.HubSilent
	}
}

// reportGoing reports that the agent switches to another hub. The Event is a Warning if the current hub does not serve
// the agent.
func (h *hubs) reportGoing(message string) {
	h.stuck = ""
	h.log.Info(message)
	if here := h.statuses[h.at.hub]; here.Out || here.Refused || !here.Unserved.IsZero() {
		// +event:message=why the agent goes to another hub
		h.events.warn("HubChanged", message)
	} else {
		// +event:message=that the agent goes back to the first hub
		h.events.normal("HubChanged", message)
	}
	h.showing.Lock()
	defer h.showing.Unlock()
	h.OnPhase(lifecycle.AgentStep{Phase: lifecycle.Unregistered, Message: message})
}

// publishAway publishes in the Secret of the current hub that the agent switches to another hub.
func (h *hubs) publishAway(ctx context.Context, message string) {
	left := h.Hubs[h.at.hub]
	publisher, is := left.Store.(statePublisher)
	if !is || h.events.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	publisher.setState(agentstate.State{State: agentstate.Away, Message: message, Time: h.Clock.Now()})
	if err := publisher.publish(ctx); err != nil {
		h.log.V(1).Info("Cannot publish the state of the agent", "hub", left.Name, "error", err.Error())
	}
}

// reportStuck reports why the agent cannot switch to another hub, if the reason has changed. An empty message ends
// this state.
func (h *hubs) reportStuck(message string) {
	if message == h.stuck {
		return
	}
	h.stuck = message
	h.showing.Lock()
	defer h.showing.Unlock()
	step := h.shown
	if message != "" {
		h.log.Info(message)
		// +event:message=why the agent has no hub
		h.events.warn("HubLost", message)
		step.Message = message
	}
	h.OnPhase(step)
}

// turnTo records the change in the record of the new hub. It does not change the record of the current hub, whose
// agent is still running.
func (h *hubs) turnTo(ctx context.Context, step lifecycle.HubsStep) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	store := h.Hubs[step.Hub].Store
	data, err := store.Load(ctx)
	if err != nil {
		return err
	}
	r, err := parseRecord(data)
	if err != nil {
		return err
	}
	r.hubTurn = hubTurn{Turn: h.at.turn + 1, Stay: step.Stay}
	if data, err = r.marshal(); err != nil {
		return err
	}
	if err := store.Save(ctx, data); err != nil {
		return err
	}
	h.at.turn = r.Turn
	return nil
}

// answers reports whether a hub responds at one of its known addresses. It sends no credential.
func (h *hubs) answers(ctx context.Context, i int) bool {
	loading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var addresses []registered
	bootstrap, err := h.Hubs[i].Bootstrap.Load(loading)
	if err == nil && bootstrap != nil {
		addresses = append(addresses, registered{Server: bootstrap.Server, CA: bootstrap.CA})
	}
	if r, err := h.record(ctx, i); err == nil && r.Member != nil &&
		(bootstrap == nil || !r.Member.at(bootstrap.Server, bootstrap.CA)) {
		addresses = append(addresses, registered{Server: r.Member.Server, CA: r.Member.CA})
	}
	for _, address := range addresses {
		if err = h.probe(ctx, address); err == nil {
			return true
		}
	}
	h.log.V(1).Info("Another hub does not respond", "hub", h.Hubs[i].Name, "error", fmt.Sprint(err))
	return false
}

// probe returns nil if an API server responds, even if it refuses the request.
func (h *hubs) probe(ctx context.Context, at registered) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	anonymous := &keeper{}
	if err := anonymous.keep(registration.Material{}, nil); err != nil {
		return err
	}
	l, err := newLink(hubConfig(at.Server, at.CA, h.HubConfig), anonymous)
	if err != nil {
		return err
	}
	defer l.close()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError {
		return fmt.Errorf("the hub responds with %s", response.Status)
	}
	return nil
}
