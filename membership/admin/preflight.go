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

// right is a required permission. An empty namespace means all namespaces.
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

// preflight collects failed checks.
type preflight []Finding

func (p *preflight) add(f Finding) { *p = append(*p, f) }

// err returns nil if no check has failed.
func (p preflight) err() error {
	if len(p) == 0 {
		return nil
	}
	return &PreflightError{Findings: p}
}

// reach checks whether a cluster responds and accepts the credential. If not, further checks are skipped.
func (p *preflight) reach(ctx context.Context, c *cluster) (id string) {
	id, err := c.id(ctx)
	check := fmt.Sprintf("reach the %s", c.side)
	var unreachable *UnreachableError
	switch {
	case err == nil:
		return id
	case errors.As(err, &unreachable):
		p.add(Finding{Check: check, Problem: unreachable.Error(), Err: unreachable,
			Fix: "check the address and the certificate authority in the kubeconfig, and the network to the cluster"})
	case apierrors.IsUnauthorized(err):
		p.add(Finding{Check: check, Problem: fmt.Sprintf("the %s does not accept the credential in the kubeconfig", c.side),
			Err: err,
			Fix: "log in to the cluster again, or choose another context"})
	default:
		p.add(Finding{Check: check, Problem: err.Error(), Err: err, Fix: "grant the user the permission to get the " +
			"namespace kube-system, whose UID identifies a cluster"})
	}
	return ""
}

// served checks whether the hub has muster's kinds. Permissions to read them are checked separately.
func (p *preflight) served(ctx context.Context, hub *cluster) bool {
	err := hub.List(ctx, &v1alpha1.MemberClusterList{}, client.Limit(1))
	switch {
	case err == nil || apierrors.IsForbidden(err):
		return true
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		p.add(Finding{Check: "CRDs on the hub",
			Problem: "the cluster does not serve the kind MemberCluster: it is not a hub, or the definitions are not " +
				"installed yet", Err: err,
			Fix: "choose the kubeconfig of the hub, or install the definitions with musterctl init or crds.Install"})
	default:
		p.add(Finding{Check: "CRDs on the hub", Problem: hub.explain("list MemberClusters", err).Error(), Err: err,
			Fix: "check the API server of the hub"})
	}
	return false
}

// may checks the permissions of the user.
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
				p.add(Finding{Check: fmt.Sprintf("rights on the %s", c.side),
					Problem: c.explain("check the permissions of the user", err).Error(), Err: err,
					Fix: "check the API server: every user is permitted to create a SelfSubjectAccessReview"})
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
		p.add(Finding{Check: fmt.Sprintf("rights on the %s", c.side),
			Problem: "the user has no permission to " + strings.Join(missing, ", nor to "),
			Fix:     "choose another user or context, or grant the permissions to this user"})
	}
}
