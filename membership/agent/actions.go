package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// firstLook is how long the agent waits to know its member before it says that it has joined, so that a join
// costs one write of the status.
const firstLook = 5 * time.Second

// act carries out one action. Each is idempotent, and what it relies on is written down before it is sent.
func (a *agent) act(ctx context.Context, action lifecycle.AgentAction) error {
	switch action {
	case lifecycle.MakeRequest:
		return a.makeRequest(ctx)
	case lifecycle.AskDoor:
		return a.askDoor(ctx)
	case lifecycle.Register:
		return a.register(ctx)
	case lifecycle.ReadMembership:
		// What became of it is what the agent decides by; an error is nothing to stop at.
		if err := a.readMembership(ctx); err != nil {
			a.log.V(1).Info("The Membership could not be read.", "error", err.Error())
		}
		return nil
	case lifecycle.SavePolicy:
		leave := a.membership.Spec.Leave
		return a.save(ctx, func(r *record) { r.Leave = &leave })
	case lifecycle.StartBeat:
		a.connection.startBeat(ctx, period(a.membership))
		return nil
	case lifecycle.StopBeat:
		a.connection.stopBeat() // it beats, or this would not be asked for
		return nil
	case lifecycle.ReportJoined:
		a.observer.wait(ctx, firstLook)
		return a.write(ctx, a.report())
	case lifecycle.RecordForgotten:
		kept := a.door.sight == lifecycle.DoorForgottenKept
		return a.save(ctx, func(r *record) { r.Forgotten, r.Kept = true, kept })
	case lifecycle.CleanMember:
		return a.cleanMember(ctx)
	case lifecycle.ReportClean:
		return a.write(ctx, report{claim: a.claim.Fingerprint(), joined: cleanedCondition})
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
		return fmt.Errorf("no such action: %s", action)
	}
}

// makeRequest keeps a request that is there for the same member: it may be on the hub already.
func (a *agent) makeRequest(ctx context.Context) error {
	next := a.record
	uid := next.member().UID
	if next.Request != nil && next.Request.MemberUID == uid {
		return nil
	}
	claim := a.claim
	if len(next.ClaimKey) == 0 {
		if err := a.identify(ctx, &next); err != nil {
			return err
		}
		var err error
		if claim, err = registration.NewClaimKey(); err != nil {
			return err
		}
		if next.ClaimKey, err = claim.Marshal(); err != nil {
			return err
		}
	}
	asked, private, err := a.Method.Request(claim, nil)
	if err != nil {
		return err
	}
	next.Request = &doorRequest{MemberUID: uid, Labels: a.Labels, Credential: asked, Private: private, MadeAt: a.Clock.Now()}
	if err := a.save(ctx, func(r *record) { *r = next }); err != nil {
		return err
	}
	a.claim = claim
	a.door.forget()
	return nil
}

// identify finds out which cluster this is, and what it would like to be called.
func (a *agent) identify(ctx context.Context, r *record) error {
	r.ClusterID, r.Name = a.ClusterID, a.Name
	if r.ClusterID == "" {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		uid, err := a.member.kubeSystemUID(ctx)
		if err != nil {
			return err
		}
		r.ClusterID = uid
	}
	if r.Name == "" {
		r.Name = defaultName(r.ClusterID)
	}
	return nil
}

// askDoor never fails: what it could not find out is an answer as well.
func (a *agent) askDoor(ctx context.Context) error {
	d, now := &a.door, a.Clock.Now()
	mine, theirs, err := a.knock(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.sight, d.why = doorFailure(err)
		a.log.V(1).Info("Asking at the door failed.", "error", err.Error())
		return nil
	}
	d.sight, d.why = doorSight(a.record, mine, theirs)
	if d.sight == lifecycle.DoorIssued && a.nothingNew(theirs) {
		d.sight, d.why = lifecycle.DoorHeld, "The hub has issued nothing newer than the credential that it refuses."
	}
	if d.answer = nil; d.sight == lifecycle.DoorIssued {
		d.answer = theirs
	} else {
		d.unanswered = now
	}
	return nil
}

// nothingNew reports whether the hub's answer is the credential that the agent has already.
func (a *agent) nothingNew(theirs *v1alpha1.JoinRequest) bool {
	if a.record.Member == nil || theirs.Status.Credential == nil {
		return false
	}
	material, err := a.Method.Open(a.claim, a.record.Request.Private, *theirs.Status.Credential)
	return err == nil && a.record.Member.Credential.same(material)
}

func (a *agent) knock(ctx context.Context) (mine, theirs *v1alpha1.JoinRequest, err error) {
	loading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bootstrap, err := a.Bootstrap.Load(loading)
	if err != nil {
		return nil, nil, err
	}
	if bootstrap == nil {
		return nil, nil, errNoBootstrap
	}
	if err := a.door.connect(bootstrap, a.HubConfig); err != nil {
		return nil, nil, err
	}
	if mine, err = joinRequest(a.record, a.claim, bootstrap); err != nil {
		return nil, nil, err
	}
	theirs, err = a.door.ask(ctx, mine)
	return mine, theirs, err
}

// register opens what the door has issued. An answer that cannot be opened is asked for again.
func (a *agent) register(ctx context.Context) error {
	request, answer, bootstrap := a.record.Request, a.door.answer, a.door.bootstrap
	since := latest(request.MadeAt, a.door.unanswered)
	defer a.door.forget()
	if answer.Status.Credential == nil || answer.Status.Namespace == "" || answer.Status.MemberUID == "" {
		return errors.New("the hub's answer says Issued and has no credential, namespace or member")
	}
	material, err := a.Method.Open(a.claim, request.Private, *answer.Status.Credential)
	if err != nil {
		return err
	}
	member := &registered{
		Name: answer.Status.MemberName, UID: answer.Status.MemberUID, Namespace: answer.Status.Namespace,
		Server: bootstrap.Server, CA: bootstrap.CA,
		Credential: issued(material, *answer.Status.Credential, since, a.Clock.Now()),
	}
	if err := a.save(ctx, func(r *record) { r.Member, r.Request, r.Renewal = member, nil, nil }); err != nil {
		return err
	}
	a.disconnect()
	return nil
}

// readMembership looks at the Membership and follows it from there. Its error is for the log.
func (a *agent) readMembership(ctx context.Context) error {
	if a.connection == nil {
		c, err := connect(*a.record.Member, a.claim, a.HubConfig, a.Clock)
		if err != nil {
			a.sight = lifecycle.HubUnreachable
			return err
		}
		a.connection = c
	}
	list, err := a.connection.hub.listMembership(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.saw(sightOf(list, err, a.connection.member))
	if a.sight == lifecycle.HubSeen {
		a.door.disconnect() // it is not needed while the hub talks to the member
		if a.follower == nil {
			a.follower = follow(ctx, a.connection.hub, a.connection.member, a.Clock, list)
		}
	}
	return err
}

// unfollow ends the watch of the Membership.
func (a *agent) unfollow() {
	if a.follower != nil {
		a.follower.close()
		a.follower = nil
	}
}

// disconnect ends all connections to the hub, and forgets what was seen of it.
func (a *agent) disconnect() {
	a.unfollow()
	if a.connection != nil {
		a.connection.close()
	}
	a.door.disconnect()
	a.connection, a.sight, a.membership = nil, lifecycle.HubNotAsked, nil
}

// cleanMember asks the cleaners up to the first that is not done, and tells the hub, if that is there, what is left.
func (a *agent) cleanMember(ctx context.Context) error {
	remaining := clean(ctx, a.Cleaners, a.record.member())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if len(remaining) == 0 {
		a.cleaned = lifecycle.MemberClean
		return nil
	}
	a.cleaned = lifecycle.MemberDirty
	a.log.V(1).Info("The member is being cleaned up.", "remaining", remaining)
	if a.sight != lifecycle.HubSeen || a.record.Forgotten {
		return nil
	}
	return a.write(ctx, report{claim: a.claim.Fingerprint(), joined: cleaningCondition, remaining: remaining[:min(len(remaining), maxRemaining)]})
}

// maxRemaining is what a Membership holds.
const maxRemaining = 20

// clean returns what the first cleaner that is not done has to say.
func clean(ctx context.Context, cleaners []membership.LeaveGate, member membership.Member) []string {
	for _, cleaner := range cleaners {
		limited, cancel := context.WithTimeout(ctx, requestTimeout)
		remaining, err := cleaner.Remaining(limited, member)
		cancel()
		if err != nil {
			return append(remaining, fmt.Sprintf("%s: %v", cleaner.Name(), err))
		}
		if len(remaining) > 0 {
			return remaining
		}
	}
	return nil
}

// forgetRecord leaves the agent as if it had just been installed.
func (a *agent) forgetRecord(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := a.Store.Delete(ctx); err != nil {
		return err // what is in memory says to try again, whatever became of it
	}
	a.clear()
	a.record = record{}
	return nil
}

// startOver leaves nothing of the claim that the agent had.
func (a *agent) startOver(ctx context.Context) error {
	if err := a.save(ctx, func(r *record) { *r = record{Kept: r.Kept} }); err != nil {
		return err
	}
	a.clear()
	return nil
}

// clear drops all that an agent knows beside its record.
func (a *agent) clear() {
	a.disconnect()
	a.door.forget()
	a.claim, a.refused, a.asked = nil, refusedRenewal{}, time.Time{}
}

// requestRenewal sends the request that was written down, or makes one if there is none or it was refused.
func (a *agent) requestRenewal(ctx context.Context) error {
	if asked := a.record.Renewal; asked == nil || asked.ID == a.refused.id {
		request, private, err := a.Method.Request(a.claim, nil)
		if err != nil {
			return err
		}
		next := &renewalRequest{ID: string(uuid.NewUUID()), Credential: request, Private: private, MadeAt: a.Clock.Now()}
		if err := a.save(ctx, func(r *record) { r.Renewal = next }); err != nil {
			return err
		}
	}
	return a.write(ctx, a.report())
}

// adoptRenewal writes the next credential down before it is used. One that cannot be opened counts as refused.
func (a *agent) adoptRenewal(ctx context.Context) error {
	asked, answer := a.record.Renewal, *a.membership.Spec.Renewal.Credential
	material, err := a.Method.Open(a.claim, asked.Private, answer)
	if err != nil {
		a.refuse(asked.ID, "What the hub issued cannot be used: "+err.Error())
		return a.save(ctx, func(r *record) { r.Renewal = nil })
	}
	member := *a.record.Member
	member.Credential = issued(material, answer, latest(asked.MadeAt, a.asked), a.Clock.Now())
	if err := a.save(ctx, func(r *record) { r.Member, r.Renewal = &member, nil }); err != nil {
		return err
	}
	a.asked, a.refused = time.Time{}, refusedRenewal{}
	a.log.Info("The agent's credential was renewed.", "expires", member.Credential.expires())
	return a.connection.swap(member.Credential, a.claim)
}

// refuse takes down that a renewal was refused, and why.
func (a *agent) refuse(id, why string) {
	if a.refused.id == id {
		return
	}
	a.refused = refusedRenewal{id: id, why: why, at: a.Clock.Now()}
	a.log.Info("The hub refuses to renew the agent's credential.", "why", why, "expires", a.record.Member.Credential.expires())
	a.events.warn("RenewalRefused", "The hub refuses to renew the agent's credential: "+why)
}

// report is what there is to say of a member in the fleet.
func (a *agent) report() report {
	m := &memberReport{
		agentVersion: a.Version, facts: a.observer.collection.facts(), health: a.observer.healthy(), refused: a.refused.why,
	}
	if asked := a.record.Renewal; asked != nil {
		m.renewal = &v1alpha1.Renewal{ID: asked.ID, Request: asked.Credential}
	}
	return report{claim: a.claim.Fingerprint(), joined: joinedCondition, member: m}
}

// write writes the status if the report changes it. It is the one place that does.
func (a *agent) write(ctx context.Context, r report) error {
	const attempts = 3
	for attempt := 1; ; attempt++ {
		status, changed := r.applied(a.membership.Status, a.Clock.Now())
		if !changed {
			return nil
		}
		next := a.membership.DeepCopy()
		next.Status = status
		updated, err := a.connection.hub.updateStatus(ctx, next)
		switch {
		case err == nil:
			a.saw(sighting{lifecycle.HubSeen, updated})
			return nil
		case !apierrors.IsConflict(err) || attempt == attempts:
			return fmt.Errorf("write the status of the Membership: %w", err)
		}
		// Somebody else has written meanwhile; the watch may not have it yet.
		if err := a.readMembership(ctx); err != nil {
			return err
		}
		if a.sight != lifecycle.HubSeen {
			return errors.New("write the status of the Membership: it is not to be seen any more")
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func notFound(err error) bool { return apierrors.IsNotFound(err) }

func (a *agent) outcomes() <-chan heartbeat.Status {
	if a.connection == nil || !a.connection.beating() {
		return nil
	}
	return a.connection.beater.Outcomes()
}

// defaultName makes a DNS label of the beginning of a cluster ID.
func defaultName(clusterID string) string {
	const enough = 8
	keep := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}
	id := strings.Map(keep, strings.ToLower(clusterID))
	return "cluster-" + strings.Trim(id[:min(enough, len(id))], "-")
}

var errNoBootstrap = errors.New("there is no bootstrap credential")
