package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// right is something that the user has to be allowed. An empty namespace is any.
type right struct {
	group, resource, subresource string
	namespace                    string
	verbs                        string // separated by spaces
}

func (r right) String() string {
	words := r.verbs + " " + schema.GroupResource{Group: r.group, Resource: r.resource}.String()
	if r.subresource != "" {
		words += "/" + r.subresource
	}
	if r.namespace != "" {
		words += " in namespace " + r.namespace
	}
	return words
}

// preflight collects what stands in the way.
type preflight []Finding

func (p *preflight) add(f Finding) { *p = append(*p, f) }

// err is nil where nothing does.
func (p preflight) err() error {
	if len(p) == 0 {
		return nil
	}
	return &PreflightError{Findings: p}
}

// reach looks whether a cluster answers and takes the user's credential. Where it does not there is no use in asking it more.
func (p *preflight) reach(ctx context.Context, c *cluster) (id string) {
	id, err := c.id(ctx)
	check := fmt.Sprintf("reach the %s", c.side)
	var unreachable *UnreachableError
	switch {
	case err == nil:
		return id
	case errors.As(err, &unreachable):
		p.add(Finding{Check: check, Problem: unreachable.Error(), Err: unreachable,
			Fix: "check the address and the certificate authority in the kubeconfig, and the network between here and there"})
	case apierrors.IsUnauthorized(err):
		p.add(Finding{Check: check, Problem: fmt.Sprintf("the %s does not accept the credential in the kubeconfig", c.side), Err: err,
			Fix: "log in to the cluster anew, or choose another context"})
	default:
		p.add(Finding{Check: check, Problem: err.Error(), Err: err, Fix: "let the user get the namespace kube-system, by whose UID clusters are told apart"})
	}
	return ""
}

// served looks whether the hub knows muster's kinds. Whether the user may read them is another question.
func (p *preflight) served(ctx context.Context, hub *cluster) bool {
	err := hub.List(ctx, &v1alpha1.MemberClusterList{}, client.Limit(1))
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return true
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		p.add(Finding{Check: "CRDs on the hub", Problem: "the cluster does not know MemberClusters, so it is no hub, or not yet", Err: err,
			Fix: "choose the kubeconfig of the hub, or install the definitions: crds.Install, which musterctl init does"})
	default:
		p.add(Finding{Check: "CRDs on the hub", Problem: hub.explain("list MemberClusters", err).Error(), Err: err, Fix: "look at the API server of the hub"})
	}
	return false
}

// may looks whether the user has the rights.
func (p *preflight) may(ctx context.Context, c *cluster, rights []right) {
	var missing []string
	for _, r := range rights {
		var verbs []string
		for verb := range strings.FieldsSeq(r.verbs) {
			review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Group: r.group, Resource: r.resource, Subresource: r.subresource, Namespace: r.namespace, Verb: verb,
				},
			}}
			if err := c.Create(ctx, review); err != nil {
				p.add(Finding{Check: fmt.Sprintf("rights on the %s", c.side), Problem: c.explain("ask for the user's rights", err).Error(), Err: err,
					Fix: "look at the API server: everybody may create a SelfSubjectAccessReview"})
				return
			}
			if !review.Status.Allowed {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			r.verbs = strings.Join(verbs, ",")
			missing = append(missing, r.String())
		}
	}
	if len(missing) > 0 {
		p.add(Finding{Check: fmt.Sprintf("rights on the %s", c.side), Problem: "the user may not " + strings.Join(missing, "; nor "),
			Fix: "choose another user or context, or give this one the rights"})
	}
}
