package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// makeRequest records a new request. It keeps an existing request for the same member, because it may be on the hub
// already.
func (a *agent) makeRequest(ctx context.Context) error {
	next := a.state.record
	uid := next.member().UID
	if next.Request != nil && next.Request.MemberUID == uid {
		return nil
	}
	claim := a.state.claim
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
	next.Request = &recordedRequest{MemberUID: uid, Labels: a.Labels, Credential: asked, Private: private,
		MadeAt: a.Clock.Now()}
	if err := a.save(ctx, func(r *record) { *r = next }); err != nil {
		return err
	}
	a.state.claim = claim
	a.requests.forget()
	return nil
}

// identify determines the cluster ID and the requested name.
func (a *agent) identify(ctx context.Context, r *record) error {
	r.ClusterID, r.Name = a.ClusterID, a.Name
	if r.ClusterID == "" {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		uid, err := a.observer.member.kubeSystemUID(ctx)
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

// checkJoinRequest reads the answer to the JoinRequest. It returns no error for a failed request: the failure is an
// observation as well.
func (a *agent) checkJoinRequest(ctx context.Context) error {
	d, now := &a.requests, a.Clock.Now()
	mine, theirs, err := a.requestJoin(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		state, why := requestFailure(err)
		d.setState(state, why, now)
		d.reason = requestReason(state, nil)
		a.Log.V(1).Info("The JoinRequest failed", "error", err.Error())
		return nil
	}
	state, why := requestState(a.state.record, a.requests.bootstrap, mine, theirs)
	if state == lifecycle.JoinRequestIssued && a.nothingNew(theirs) {
		state, why = lifecycle.JoinRequestHeld, "The hub has not issued a newer credential than the one that it refuses."
	}
	d.setState(state, why, now)
	d.reason = requestReason(state, theirs)
	if d.answer = nil; d.state == lifecycle.JoinRequestIssued {
		d.answer = theirs
	} else {
		d.unanswered = now
	}
	return nil
}

// nothingNew reports whether the answer contains the agent's current credential.
func (a *agent) nothingNew(theirs *v1alpha1.JoinRequest) bool {
	if a.state.record.Member == nil || theirs.Status.Credential == nil {
		return false
	}
	material, err := a.Method.Open(a.state.claim, a.state.record.Request.Private, *theirs.Status.Credential)
	return err == nil && a.state.record.Member.Credential.same(material)
}

func (a *agent) requestJoin(ctx context.Context) (mine, theirs *v1alpha1.JoinRequest, err error) {
	loading, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	bootstrap, err := a.Bootstrap.Load(loading)
	if err != nil {
		return nil, nil, homeError{err}
	}
	if bootstrap == nil {
		return nil, nil, errNoBootstrap
	}
	if bootstrap.Token == "" {
		return nil, nil, errRemovedBootstrap
	}
	a.reports.publication.askedWith = agentstate.Fingerprint(bootstrap)
	if a.state.record.strange(bootstrap) {
		return nil, nil, differentHubError{mine: a.state.record.hubID(), theirs: bootstrap.HubID}
	}
	if a.state.record.Request == nil {
		return nil, nil, homeError{errors.New("the record contains no request")}
	}
	if err := a.requests.connect(bootstrap, a.HubConfig); err != nil {
		return nil, nil, homeError{err}
	}
	if a.requests.signedOf != a.state.record.Request { // a record is never changed, but replaced
		if mine, err = joinRequest(a.state.record, a.state.claim, bootstrap); err != nil {
			return nil, nil, homeError{err}
		}
		a.requests.signed, a.requests.signedOf = mine, a.state.record.Request
	}
	if err := a.noteMove(ctx, bootstrap); err != nil {
		return nil, nil, homeError{err}
	}
	theirs, err = a.requests.ensureRequest(ctx, a.requests.signed)
	return a.requests.signed, theirs, err
}

// register opens the issued credential and records it. If the credential cannot be opened, the next step reads the
// answer again.
func (a *agent) register(ctx context.Context) error {
	request, answer, bootstrap := a.state.record.Request, a.requests.answer, a.requests.bootstrap
	since := latest(request.MadeAt, a.requests.unanswered)
	defer a.requests.forget()
	if answer.Status.Credential == nil || answer.Status.Namespace == "" || answer.Status.MemberUID == "" {
		return errors.New("the answer of the hub is Issued, but it has no credential, namespace or member")
	}
	material, err := a.Method.Open(a.state.claim, request.Private, *answer.Status.Credential)
	if err != nil {
		return err
	}
	member := &registered{
		Name: answer.Status.MemberName, UID: answer.Status.MemberUID, Namespace: answer.Status.Namespace,
		Server: bootstrap.Server, CA: bootstrap.CA, HubID: bootstrap.HubID,
		Credential: issued(material, *answer.Status.Credential, since, a.Clock.Now()),
	}
	if is := answer.Status.Hub; is != nil {
		member.HubID = is.ID
	}
	moved := a.state.record.moves(bootstrap)
	err = a.save(ctx, func(r *record) {
		r.Member, r.Request, r.Renewal = member, nil, nil
		if moved {
			r.Hub = nil
		}
	})
	if err != nil {
		return err
	}
	a.hub.address.reregister, a.hub.address.checked = false, a.Clock.Now()
	a.requests.removal = removal{}
	if moved {
		a.hub.revision, a.hub.rolledBack = "", false
		a.Log.Info("The member has moved to another hub", "hub", member.HubID, "server", member.Server)
		a.reports.events.normal("HubChanged", fmt.Sprintf("The member has moved to hub %s at %s.", member.HubID,
			member.Server))
	}
	a.disconnect()
	return nil
}

// adoptMember records the UID of a MemberCluster that was created again. It changes nothing on the member.
func (a *agent) adoptMember(ctx context.Context) error {
	member, is := *a.state.record.Member, a.hub.replaced
	before := member.UID
	member.UID, member.Name = is.Spec.MemberUID, is.Spec.MemberName
	if err := a.save(ctx, func(r *record) { r.Member, r.Request, r.Renewal = &member, nil, nil }); err != nil {
		return err
	}
	a.Log.Info("The MemberCluster was created again, and the agent adopts its UID", "member", member.Name, "uid",
		member.UID, "before", before)
	a.reports.events.normal("MemberAdopted",
		fmt.Sprintf("MemberCluster %s was created again: the member continues with UID %s.", member.Name, member.UID))
	a.disconnect()
	return nil
}

// noteMove records that an administrator requested a move, before the agent sends a request to the other hub.
func (a *agent) noteMove(ctx context.Context, bootstrap *registration.Bootstrap) error {
	if !a.state.record.moves(bootstrap) {
		return nil
	}
	next := moveRequest{From: a.state.record.hubID(), To: bootstrap.HubID, RequestedAt: a.Clock.Now()}
	if known := a.state.record.Move; known != nil && known.From == next.From && known.To == next.To {
		return nil
	}
	if err := a.save(ctx, func(r *record) { r.Move = &next }); err != nil {
		return err
	}
	a.Log.Info("An administrator requested to move the member to another hub", "from", next.From, "to", next.To)
	a.reports.events.normal("MoveRequested",
		fmt.Sprintf("The bootstrap credential requests to move the member from hub %s to "+
			"hub %s.", next.From, next.To))
	return nil
}

// defaultName derives a DNS label from the beginning of a cluster ID.
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

var (
	errNoBootstrap      = errors.New("there is no bootstrap credential")
	errRemovedBootstrap = fmt.Errorf("%w: the agent removed it after the cluster had joined", errNoBootstrap)
)
