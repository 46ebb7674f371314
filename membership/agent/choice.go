package agent

import (
	"context"
	"fmt"
	"net/http"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
)

// begin finds out which hub the agent was at: that of the record with the last turn, or the first.
func (h *hubs) begin(ctx context.Context) error {
	for i := range h.Hubs {
		r, err := h.record(ctx, i)
		if err != nil {
			return err
		}
		if r.Turn > h.turn {
			// It came there from another hub once. Nobody knows when, so it may have been just now.
			h.turn, h.current, h.since, h.stays = r.Turn, i, h.Clock.Now(), r.Stay
		}
	}
	return nil
}

// record reads what is known of a hub. A record that cannot be used is for the agent to complain of, when it comes to that hub.
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

// choose decides where to be, and writes down where to go before it returns that.
func (h *hubs) choose(ctx context.Context) lifecycle.HubsStep {
	now := h.Clock.Now()
	for i := range h.standing {
		h.standing[i].Answer = lifecycle.HubAnswerUnknown
	}
	for {
		step := lifecycle.SelectHub(lifecycle.HubsObserved{
			Now: now, Hubs: h.standing, Current: h.current, Since: h.since, Patience: h.patience, Return: h.returns, Stay: h.stays,
		})
		switch {
		case ctx.Err() != nil:
			return lifecycle.HubsStep{Hub: h.current}
		case step.Ask:
			answer := lifecycle.HubSilent
			if h.answers(ctx, step.Hub) {
				answer = lifecycle.HubAnswers
			}
			h.standing[step.Hub] = h.standing[step.Hub].Heard(answer, now)
			continue
		case step.Hub == h.current:
			return step
		}
		err := h.turnTo(ctx, step)
		if err == nil {
			return step
		}
		h.log.Error(err, "The agent could not write down where to go.", "hub", h.Hubs[step.Hub].Name)
		h.standing[step.Hub].Answer = lifecycle.HubSilent
	}
}

// tellGoing tells everybody who is interested that the agent goes to another hub.
func (h *hubs) tellGoing(message string) {
	h.stuck = ""
	h.log.Info(message)
	h.events.warn("HubChanged", message)
	h.showing.Lock()
	defer h.showing.Unlock()
	h.OnPhase(lifecycle.AgentStep{Phase: lifecycle.Unregistered, Message: message})
}

// tellAway has those know who wait for the agent at the hub that it leaves.
func (h *hubs) tellAway(ctx context.Context, message string) {
	left := h.Hubs[h.current]
	keeper, is := left.Store.(fareKeeper)
	if !is || h.events.recorder == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fareTimeout)
	defer cancel()
	keeper.note(agentstate.State{State: agentstate.Away, Message: message, Time: h.Clock.Now()})
	if err := keeper.tell(ctx); err != nil {
		h.log.V(1).Info("How the agent fares could not be written.", "hub", left.Name, "error", err.Error())
	}
}

// tellStuck tells them that it cannot, and why, when that is another reason than before; and when it is over.
func (h *hubs) tellStuck(message string) {
	if message == h.stuck {
		return
	}
	h.stuck = message
	h.showing.Lock()
	defer h.showing.Unlock()
	step := h.shown
	if message != "" {
		h.log.Info(message)
		h.events.warn("HubLost", message)
		step.Message = message
	}
	h.OnPhase(step)
}

// turnTo writes down that it is the hub's turn, in the record of that hub. It leaves alone that of the current one, whose agent is at work.
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
	r.Turn, r.Stay = h.turn+1, step.Stay
	if data, err = r.marshal(); err != nil {
		return err
	}
	if err := store.Save(ctx, data); err != nil {
		return err
	}
	h.turn = r.Turn
	return nil
}

// answers reports whether there is a hub at one of the addresses that are known of it. It shows no credential to anybody.
func (h *hubs) answers(ctx context.Context, i int) bool {
	loading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var addresses []registered
	bootstrap, err := h.Hubs[i].Bootstrap.Load(loading)
	if err == nil && bootstrap != nil {
		addresses = append(addresses, registered{Server: bootstrap.Server, CA: bootstrap.CA})
	}
	if r, err := h.record(ctx, i); err == nil && r.Member != nil && (bootstrap == nil || !r.Member.at(bootstrap.Server, bootstrap.CA)) {
		addresses = append(addresses, registered{Server: r.Member.Server, CA: r.Member.CA})
	}
	for _, address := range addresses {
		if err = h.ask(ctx, address); err == nil {
			return true
		}
	}
	h.log.V(1).Info("Another hub does not answer.", "hub", h.Hubs[i].Name, "error", fmt.Sprint(err))
	return false
}

// ask returns nil when an API server answers: it may well refuse to.
func (h *hubs) ask(ctx context.Context, at registered) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	nobody := &keeper{}
	if err := nobody.keep(registration.Material{}, nil); err != nil {
		return err
	}
	l, err := newLink(hubConfig(at.Server, at.CA, h.HubConfig), nobody)
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
		return fmt.Errorf("it says %s", response.Status)
	}
	return nil
}
