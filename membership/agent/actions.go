package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/membership/lifecycle"
)

// firstLook is how long the agent waits for the first facts about its member before it reports Joined, so that a join
// costs one write of the status.
const firstLook = 5 * time.Second

// act carries out one action. Each is idempotent, and its request is recorded before it is sent.
func (a *agent) act(ctx context.Context, action lifecycle.AgentAction) error {
	switch action {
	case lifecycle.MakeRequest:
		return a.makeRequest(ctx)
	case lifecycle.CheckJoinRequest:
		return a.checkJoinRequest(ctx)
	case lifecycle.Register:
		return a.register(ctx)
	case lifecycle.AdoptMember:
		return a.adoptMember(ctx)
	case lifecycle.ReadMembership:
		// The agent decides with the result, so an error does not stop the step.
		if err := a.readMembership(ctx); err != nil {
			a.Log.V(1).Info("Cannot read the Membership", "error", err.Error())
		}
		return nil
	case lifecycle.SavePolicy:
		leave := a.hub.membership.Spec.Leave
		return a.save(ctx, func(r *record) {
			r.Leave = &leave
			if is := a.hub.membership.Spec.Hub; is != nil && r.Member.HubID == "" {
				member := *r.Member
				member.HubID = is.ID // of a record from before hubs had one
				r.Member = &member
			}
			if is := a.hub.membership.Spec.Hub; is != nil && a.state.record.requiredEpoch() == 0 {
				r.Hub = a.hubState(max(is.Epoch, a.state.record.knownEpoch()))
			}
		})
	case lifecycle.StartBeat:
		a.connection.startBeat(ctx, period(a.hub.membership))
		return nil
	case lifecycle.StopBeat:
		a.connection.stopBeat() // the action is decided only while the heartbeat runs
		return nil
	case lifecycle.ReportJoined:
		a.observer.wait(ctx, firstLook)
		return a.write(ctx, a.report())
	case lifecycle.RecordDeregistered:
		kept := a.requests.state == lifecycle.JoinRequestDeregisteredKept
		return a.save(ctx, func(r *record) { r.Deregistered, r.Kept = true, kept })
	case lifecycle.CleanMember:
		return a.cleanMember(ctx)
	case lifecycle.ReportClean:
		return a.write(ctx, report{claim: a.state.claim.Fingerprint(), joined: cleanedCondition})
	case lifecycle.RecordOut:
		return a.save(ctx, func(r *record) { r.Out = true })
	case lifecycle.ForgetBootstrap:
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		return a.Bootstrap.Forget(ctx)
	case lifecycle.StartOver:
		return a.startOver(ctx)
	case lifecycle.ForgetRecord:
		return a.forgetRecord(ctx)
	case lifecycle.RequestRenewal:
		return a.requestRenewal(ctx)
	case lifecycle.AdoptRenewal:
		return a.adoptRenewal(ctx)
	default:
		return fmt.Errorf("unknown action: %s", action)
	}
}
