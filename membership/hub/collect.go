package hub

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requestAnnotation contains the UID of the JoinRequest for which a MemberCluster was created.
const requestAnnotation = v1alpha1.GroupName + "/join-request"

// readTTL is how long an answer is kept for its agent to read. When its request is deleted, an agent creates another
// one with its current bootstrap credential, so a longer time would delay an agent that received a better credential.
const readTTL = 10 * time.Minute

// strangerTTL is how long the request of an agent that is a member of another hub is kept. A later request for a move
// has the same name.
const strangerTTL = time.Minute

// collect deletes a request that is complete, or that was not accepted in time, together with the MemberCluster that
// was created for it if that is undecided. Therefore objects that were created with a stolen bootstrap credential are
// deleted without an administrator.
func (d *joinRequestController) collect(ctx context.Context, request *v1alpha1.JoinRequest,
	step lifecycle.JoinRequestStep) (bool, error) {
	done, err := d.delivered(ctx, request)
	if err != nil {
		return false, err
	}
	if !done && d.untilCollected(request) > 0 {
		return false, nil
	}
	name := request.Status.MemberName
	if step.Member != nil {
		name = step.Member.Name
	}
	if !done && name != "" {
		if err := d.collectMember(ctx, d.client, request, name); err != nil {
			return false, err
		}
	}
	return true, client.IgnoreNotFound(d.client.Delete(ctx, request, precondition.Unchanged(request)))
}

// release removes all finalizers from a request that is being deleted. The client that created the request can set
// finalizers; otherwise such requests would use up the quota permanently.
func (d *joinRequestController) release(ctx context.Context, request *v1alpha1.JoinRequest) error {
	if len(request.Finalizers) == 0 {
		return nil
	}
	before := request.DeepCopy()
	request.Finalizers = nil
	return client.IgnoreNotFound(d.client.Patch(ctx, request, precondition.Patch(before)))
}

// delivered reports whether the agent has used the issued credential, which means that it has joined.
func (d *joinRequestController) delivered(ctx context.Context, request *v1alpha1.JoinRequest) (bool, error) {
	if request.Status.Answer != v1alpha1.AnswerIssued {
		return false, nil
	}
	if request.Spec.MemberUID != "" {
		return false, nil // it had joined before, so it is unknown whether it has read the answer
	}
	self, err := found(ctx, d.client,
		client.ObjectKey{Namespace: request.Status.Namespace, Name: membership.MembershipName}, &v1alpha1.Membership{})
	if err != nil || self == nil {
		return false, err
	}
	if reportOf(self, request.Status.Claim) == lifecycle.ReportedNothing {
		return false, nil
	}
	return d.recorded(ctx, request)
}

// recorded reports whether the expiration time of the issued credential is recorded in the MemberCluster, because it is
// unknown after the request is deleted. A member that does not exist any more, or has another agent, needs no record.
func (d *joinRequestController) recorded(ctx context.Context, request *v1alpha1.JoinRequest) (bool, error) {
	if request.Status.Credential == nil || request.Status.Credential.ExpirationTime == nil {
		return true, nil
	}
	cluster, err := found(ctx, d.client, client.ObjectKey{Name: request.Status.MemberName}, &v1alpha1.MemberCluster{})
	if err != nil {
		return false, err
	}
	if cluster == nil || cluster.UID != request.Status.MemberUID || cluster.Spec.Claim != request.Status.Claim {
		return true, nil
	}
	end := cluster.Status.CredentialExpirationTime
	return end != nil && !end.Before(request.Status.Credential.ExpirationTime), nil
}

func (d *joinRequestController) collectMember(ctx context.Context, reader client.Reader,
	request *v1alpha1.JoinRequest, name string) error {
	cluster, err := found(ctx, reader, client.ObjectKey{Name: name}, &v1alpha1.MemberCluster{})
	if err != nil || cluster == nil {
		return err
	}
	if cluster.Spec.Accepted != nil || cluster.Annotations[requestAnnotation] != string(request.UID) {
		return nil
	}
	return client.IgnoreNotFound(d.client.Delete(ctx, cluster, precondition.Unchanged(cluster)))
}

// untilCollected returns the remaining time for which a request is kept.
func (d *joinRequestController) untilCollected(request *v1alpha1.JoinRequest) time.Duration {
	end := request.CreationTimestamp.Add(d.options.RequestTTL)
	issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued)
	switch request.Status.Answer {
	case v1alpha1.AnswerDenied, v1alpha1.AnswerDeregistered:
		from := request.CreationTimestamp.Time
		if issued != nil && issued.Reason == v1alpha1.ReasonTokenEnded {
			from = issued.LastTransitionTime.Time
		}
		if readable := from.Add(readTTL); readable.Before(end) {
			end = readable
		}
	case v1alpha1.AnswerHeld:
		if issued != nil && issued.Reason == v1alpha1.ReasonDifferentHub {
			end = request.CreationTimestamp.Add(min(d.options.RequestTTL, strangerTTL))
		}
	case v1alpha1.AnswerIssued:
		if issued == nil {
			break
		}
		// An administrator may accept the member when the request is almost too old.
		readable := issued.LastTransitionTime.Add(readTTL)
		if request.Spec.MemberUID != "" || readable.After(end) {
			end = readable
		}
	}
	return max(0, end.Sub(d.options.Clock.Now()))
}
