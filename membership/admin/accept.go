package admin

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// DecideOptions are those of [Accept] and [Deny].
type DecideOptions struct {
	// RegistrationNamespace of the hub has the JoinRequests. Empty: muster-registration.
	RegistrationNamespace string
}

// Accept lets a cluster in. It is named by its MemberCluster, which may not have been asked for yet, by its JoinRequest, or by the name that its
// JoinRequest wants. One that is let in already stays so.
//
// A request that waits for something else than acceptance is [ErrNameTaken] or [ErrClusterTaken], with the hub's words for
// what to do. It is [ErrNotFound] when there is neither member nor request.
//
// It needs get and patch on memberclusters, and list on joinrequests in the registration namespace.
func Accept(ctx context.Context, hub *rest.Config, name string, o DecideOptions) (*v1alpha1.MemberCluster, error) {
	return decide(ctx, hub, decision{name: name, accepted: true, namespace: o.RegistrationNamespace})
}

// Deny refuses a cluster, named as for [Accept]. One that was let in loses all permissions on the hub at once, and keeps
// what is on it; to have it leave, call [Unjoin]. Errors and permissions are those of Accept.
func Deny(ctx context.Context, hub *rest.Config, name string, o DecideOptions) (*v1alpha1.MemberCluster, error) {
	return decide(ctx, hub, decision{name: name, accepted: false, namespace: o.RegistrationNamespace})
}

type decision struct {
	name, namespace string
	accepted        bool
}

func decide(ctx context.Context, config *rest.Config, d decision) (*v1alpha1.MemberCluster, error) {
	if d.name == "" {
		return nil, &membership.InvalidError{Field: "name", Problem: "is empty: it must be that of a MemberCluster or a JoinRequest"}
	}
	d.namespace = orDefault(d.namespace, membership.RegistrationNamespace)
	hub, err := connect(Hub, config)
	if err != nil {
		return nil, err
	}
	member, err := found(ctx, hub, client.ObjectKey{Name: d.name}, &v1alpha1.MemberCluster{})
	if err != nil {
		return nil, err
	}
	if member == nil {
		if member, err = requested(ctx, hub, d); err != nil {
			return nil, err
		}
	}
	if member.Spec.Accepted != nil && *member.Spec.Accepted == d.accepted {
		return member, nil
	}
	before := member.DeepCopy()
	member.Spec.Accepted = new(d.accepted)
	if err := hub.Patch(ctx, member, client.MergeFrom(before)); err != nil {
		return nil, hub.explain("change MemberCluster "+member.Name, err)
	}
	return member, nil
}

// requested returns the member that a request is for.
func requested(ctx context.Context, hub *cluster, d decision) (*v1alpha1.MemberCluster, error) {
	var list v1alpha1.JoinRequestList
	if err := hub.List(ctx, &list, client.InNamespace(d.namespace)); err != nil {
		return nil, hub.explain("list JoinRequests", err)
	}
	var requests []v1alpha1.JoinRequest
	for _, request := range list.Items {
		if request.Name == d.name {
			requests = []v1alpha1.JoinRequest{request}
			break
		}
		if request.Spec.Name == d.name {
			requests = append(requests, request)
		}
	}
	switch len(requests) {
	case 0:
		return nil, fmt.Errorf("no MemberCluster and no JoinRequest is called %s: %w", d.name, ErrNotFound)
	case 1:
	default:
		return nil, fmt.Errorf("%d JoinRequests want the name %s: name one of them by its own name, such as %s: %w", len(requests), d.name, requests[0].Name, ErrNameTaken)
	}
	request := requests[0]
	if issued := meta.FindStatusCondition(request.Status.Conditions, v1alpha1.ConditionIssued); issued != nil {
		waiting := fmt.Sprintf("JoinRequest %s: %s", request.Name, issued.Message)
		switch issued.Reason {
		case v1alpha1.ReasonClusterIDTaken:
			return nil, fmt.Errorf("%s: %w", waiting, ErrClusterTaken)
		case v1alpha1.ReasonNameTaken, v1alpha1.ReasonNameReserved:
			return nil, fmt.Errorf("%s: %w", waiting, ErrNameTaken)
		}
	}
	switch {
	case request.Status.MemberName != "":
	case request.Status.Answer == v1alpha1.AnswerDenied:
		return nil, fmt.Errorf("JoinRequest %s has been refused for good: the cluster has to ask again, with another token: %w", request.Name, ErrDenied)
	default:
		return nil, fmt.Errorf("JoinRequest %s has not been answered by the hub yet: try again, and if that stays so look whether its controller is running: %w", request.Name, ErrNotFound)
	}
	member, err := found(ctx, hub, client.ObjectKey{Name: request.Status.MemberName}, &v1alpha1.MemberCluster{})
	if err == nil && member == nil {
		err = fmt.Errorf("member %s of JoinRequest %s is gone: %w", request.Status.MemberName, request.Name, ErrNotFound)
	}
	return member, err
}
