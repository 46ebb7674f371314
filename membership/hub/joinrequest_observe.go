package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// observe reads a request and its possible members.
func (d *joinRequestController) observe(ctx context.Context, request *v1alpha1.JoinRequest) (
	lifecycle.JoinRequestObserved, *v1alpha1.JoinToken, error) {
	o := lifecycle.JoinRequestObserved{
		Status:    lifecycle.AnswerSeen{Answer: request.Status.Answer, Bound: request.Status.MemberUID},
		ClusterID: request.Spec.ClusterID,
		Name:      request.Spec.Name,
		Agent: lifecycle.RequesterSeen{
			Claim: registration.Fingerprint(request.Spec.ClaimKey), MemberUID: request.Spec.MemberUID, HubID: request.Spec.HubID,
		},
		Type:      request.Spec.Credential.Type,
		CreatedAt: request.CreationTimestamp.Time,
	}
	if issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued); issued != nil {
		o.Status.Reason = issued.Reason
	}
	if err := registration.Verify(request); err != nil {
		return o, nil, invalid(err, &o.Invalid)
	}
	proven := registration.ProvenKeys(request.Spec.ClaimKey, request.Spec.Keys)
	o.Agent.Keys = proven[:len(proven)-1]
	var err error
	if o.HubID, err = d.identity.id(ctx); err != nil {
		return o, nil, err
	}
	if err := d.look(ctx, d.client, &o); err != nil {
		return o, nil, err
	}

	// The token is not needed after the hub has recorded the claim: an agent whose token expires between the claim and
	// the acceptance can still join. Until a decision exists, the policy is called with the token.
	if member := o.Members.ByClaim; member != nil && member.Accepted != nil {
		return o, nil, nil
	}
	var token *v1alpha1.JoinToken
	switch {
	case request.Spec.Token != nil:
		if token, err = jointoken.Check(ctx, d.reader, request); err != nil {
			if err = invalid(err, &o.Token.Refused); err == nil && o.Members.ByClaim != nil {
				err = d.lookForToken(ctx, request, &o)
			}
			return o, nil, err
		}
		d.tokenEnd(token, &o)
		if o.Token.Refused = reserved(token, o); o.Token.Refused != "" {
			return o, nil, nil
		}
	case !d.options.AllowWithoutToken:
		o.Token.Refused = "spec.token: is not set, and this hub requires a JoinToken"
		return o, nil, nil
	}
	if err := d.checkLabels(ctx, request, token, &o); err != nil || o.Token.Refused != "" {
		return o, nil, err
	}
	o.Token.Readopt = token != nil && token.Spec.AutoAccept && token.Spec.ClusterID == o.ClusterID
	if o.Acceptor.Acceptance, err = d.acceptance(ctx, request, token); err != nil {
		if ctx.Err() != nil {
			return o, token, err // the hub ends, the Acceptor has not failed
		}
		logf.FromContext(ctx).Error(err, "The Acceptor failed")
		o.Acceptor.Error = lifecycle.FormatMessage(err.Error())
	}
	return o, token, nil
}

// checkLabels denies the request for a new member with a label that it must not have. The labels of a request have no
// effect on an existing member.
func (d *joinRequestController) checkLabels(ctx context.Context, request *v1alpha1.JoinRequest,
	token *v1alpha1.JoinToken,
	o *lifecycle.JoinRequestObserved) error {
	if len(request.Spec.Labels) == 0 || o.Members.ByClaim != nil || o.Members.ByID != nil || o.Members.ByName != nil {
		return nil
	}
	var protected []string
	if d.options.ProtectedLabels != nil {
		var err error
		if protected, err = d.options.ProtectedLabels(ctx); err != nil {
			return fmt.Errorf("get the protected labels: %w", err)
		}
	}
	return invalid(jointoken.AdmitLabels(token, request, protected), &o.Token.Refused)
}

// reserved returns the reason why a token for a single member does not admit a request; empty: the token admits it.
func reserved(token *v1alpha1.JoinToken, o lifecycle.JoinRequestObserved) string {
	uid, member := jointoken.MemberUID(token), o.Members.ByID
	if member == nil {
		member = o.Members.ByName
	}
	if uid == "" || member != nil && member.UID == uid {
		return ""
	}
	return fmt.Sprintf("spec.token.name: JoinToken %q is for a single MemberCluster, which does not exist or is not "+
		"that of this cluster", token.Name)
}

// look reads the members with the claim, the cluster ID or the name of a request.
func (d *joinRequestController) look(ctx context.Context, members client.Reader,
	o *lifecycle.JoinRequestObserved) error {
	o.Members = lifecycle.MembersSeen{}
	if err := d.lookByClaim(ctx, members, o); err != nil {
		return err
	}
	var same v1alpha1.MemberClusterList
	if err := members.List(ctx, &same, client.MatchingFields{byClusterID: o.ClusterID}); err != nil {
		return err
	}
	slices.SortFunc(same.Items, func(a, b v1alpha1.MemberCluster) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range same.Items {
		if i > 0 {
			o.Members.Others = append(o.Members.Others, same.Items[i].Name)
			continue
		}
		var err error
		if o.Members.ByID, err = d.see(ctx, &same.Items[i]); err != nil {
			return err
		}
	}
	named, err := found(ctx, members, client.ObjectKey{Name: o.Name}, &v1alpha1.MemberCluster{})
	if err != nil {
		return err
	}
	if named == nil {
		return d.lookForTombstones(ctx, members == d.reader, o)
	}
	if o.Members.ByName, err = d.see(ctx, named); err != nil {
		return err
	}
	return d.lookForTombstones(ctx, members == d.reader, o)
}

// lookByClaim reads the member with the claim of a request.
func (d *joinRequestController) lookByClaim(ctx context.Context, members client.Reader,
	o *lifecycle.JoinRequestObserved) error {
	var list v1alpha1.MemberClusterList
	if err := members.List(ctx, &list, client.MatchingFields{byClaim: o.Agent.Claim}); err != nil {
		return err
	}
	for i := range list.Items {
		// Several members have one claim only if an administrator copied a MemberCluster: the cluster ID is decisive.
		if o.Members.ByClaim != nil && list.Items[i].Spec.ClusterID != o.ClusterID {
			continue
		}
		var err error
		if o.Members.ByClaim, err = d.see(ctx, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// lookForTombstones reads the records of members that left, if the decision may depend on them. It always reads them
// before a MemberCluster is created, because a claim whose member left must never join again.
func (d *joinRequestController) lookForTombstones(ctx context.Context, live bool,
	o *lifecycle.JoinRequestObserved) (err error) {
	o.Tombstones = nil
	if o.Members.ByClaim == nil && (live || o.NeedsTombstones()) {
		o.Tombstones, err = d.tombstones.of(ctx, o.ClusterID)
	}
	return err
}

// invalid stores the message of an error that denies a request permanently, and returns all other errors.
func invalid(err error, into *string) error {
	var refused *membership.InvalidError
	if !errors.As(err, &refused) {
		return err
	}
	*into = refused.Error()
	return nil
}

// acceptance returns the decision of the Acceptor or, if there is none, that of the JoinToken.
func (d *joinRequestController) acceptance(ctx context.Context, request *v1alpha1.JoinRequest,
	token *v1alpha1.JoinToken) (membership.Acceptance, error) {
	switch acceptor := d.options.Acceptor; {
	case acceptor != nil:
		return ask(ctx, acceptor, request)
	case token != nil:
		return jointoken.Acceptance(token), nil
	default:
		return membership.Acceptance{Decision: membership.Hold}, nil
	}
}

// see converts a MemberCluster to the input of the decision.
func (d *joinRequestController) see(ctx context.Context,
	cluster *v1alpha1.MemberCluster) (*lifecycle.MemberSeen, error) {
	member := memberOf(cluster, d.options.NamespacePrefix)
	subject, missing := subjectOf(member, cluster.Spec.Credential, d.options.Issuers)
	seen := &lifecycle.MemberSeen{
		Name: cluster.Name, UID: cluster.UID, ClusterID: cluster.Spec.ClusterID, Claim: cluster.Spec.Claim,
		AgentSeen:  lifecycle.AgentSeen{Keys: cluster.Spec.ClaimKeys},
		Credential: cluster.Spec.Credential, Accepted: cluster.Spec.Accepted,
		Deleting: cluster.DeletionTimestamp != nil,
		Desired:  cluster.Spec.State,
		Leaving:  cluster.Status.Leave != nil && !cluster.Status.Leave.Ended, Identified: missing == nil,
	}
	binding, err := found(ctx, d.client, client.ObjectKey{Namespace: member.Namespace, Name: membership.AgentName},
		&rbacv1.RoleBinding{})
	if err != nil {
		return nil, err
	}
	self, err := found(ctx, d.client, client.ObjectKey{Namespace: member.Namespace, Name: membership.MembershipName},
		&v1alpha1.Membership{})
	if err != nil {
		return nil, err
	}
	if self != nil && self.Spec.MemberUID == cluster.UID {
		seen.Reported = self.Status.Claim
	}
	seen.Prepared = subject != nil && self != nil && self.Spec.MemberUID == cluster.UID &&
		binding != nil && slices.Equal(binding.Subjects, []rbacv1.Subject{*subject})
	return seen, nil
}
