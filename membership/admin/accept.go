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

// DecideOptions are the options of [Accept] and [Deny].
type DecideOptions struct {
	// RegistrationNamespace is the namespace of JoinRequests on the hub. Default: muster-registration.
	RegistrationNamespace string
}

// Accept admits a cluster. The name is that of its MemberCluster, which need not exist yet, of its JoinRequest, or the
// name that the JoinRequest requests. Accepting an accepted cluster has no effect.
//
// The error is [ErrNameTaken] or [ErrClusterTaken], with the message of the hub, if the request is pending for another
// reason than acceptance, and [ErrNotFound] if neither a member nor a request exists.
//
// Accept requires get and patch on memberclusters, and list on joinrequests in the registration namespace.
func Accept(ctx context.Context, hub *rest.Config, name string, o DecideOptions) (*v1alpha1.MemberCluster, error) {
	return decide(ctx, hub, decision{name: name, accepted: true, namespace: o.RegistrationNamespace})
}

// Deny rejects a cluster, which is named as for [Accept]. An accepted cluster immediately loses all permissions on the
// hub and keeps its objects; to remove them, call [Unjoin]. Errors and permissions are those of Accept.
func Deny(ctx context.Context, hub *rest.Config, name string, o DecideOptions) (*v1alpha1.MemberCluster, error) {
	return decide(ctx, hub, decision{name: name, accepted: false, namespace: o.RegistrationNamespace})
}

type decision struct {
	name, namespace string
	accepted        bool
}

func decide(ctx context.Context, config *rest.Config, d decision) (*v1alpha1.MemberCluster, error) {
	if d.name == "" {
		return nil, &membership.InvalidError{Field: "name", Problem: "must be the name of a MemberCluster or a JoinRequest"}
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

// requested returns the member of a request.
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
		return nil, fmt.Errorf("no MemberCluster and no JoinRequest has the name %s: %w", d.name, ErrNotFound)
	case 1:
	default:
		return nil, fmt.Errorf("%d JoinRequests request the name %s: use the name of one of them, such as %s: %w",
			len(requests), d.name, requests[0].Name, ErrNameTaken)
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
		return nil, fmt.Errorf("JoinRequest %s is rejected permanently: join again with another token: %w", request.Name,
			ErrDenied)
	default:
		return nil, fmt.Errorf("JoinRequest %s has no response from the hub yet: retry, or check that the hub's "+
			"controller is running: %w", request.Name, ErrNotFound)
	}
	member, err := found(ctx, hub, client.ObjectKey{Name: request.Status.MemberName}, &v1alpha1.MemberCluster{})
	if err == nil && member == nil {
		err = fmt.Errorf("member %s of JoinRequest %s does not exist: %w", request.Status.MemberName, request.Name,
			ErrNotFound)
	}
	return member, err
}
