package addon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/placement/bundle"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// isCredential reports whether an object of a Work is the credential of an add-on's agent.
func isCredential(o *bundle.Object, addon string) bool {
	if o.Group != corev1.GroupName || o.Kind != "Secret" {
		return false
	}
	secret := &corev1.Secret{}
	return json.Unmarshal(o.JSON, secret) == nil && registration.IsManifest(secret, addon)
}

// updateCredential replaces the credential in Works if this reconcile did not update the member. All other content
// stays, because the hub does not know the former manifests.
func (l *memberReconciliation) updateCredential(ctx context.Context) error {
	for _, r := range l.observed.works {
		if r.credential == nil || r.existing.Deleting || slices.Contains(l.access.delivered, r.Namespace) {
			continue
		}
		named := l.access.manifest.DeepCopy() // as at the last assignment
		named.SetNamespace(r.credential.Namespace)
		named.SetName(r.credential.Name)
		made, err := toBundleObjects([]*unstructured.Unstructured{named})
		if err != nil {
			return err
		}
		if made[0].Hash == r.credential.Hash {
			continue
		}
		if err := l.updateCredentialIn(ctx, r, &made[0]); err != nil {
			return fmt.Errorf("update the credential of the agent in Work %s/%s: %w", r.Namespace, r.Name, err)
		}
	}
	return nil
}

// updateCredentialIn replaces the credential in a Work.
func (l *memberReconciliation) updateCredentialIn(ctx context.Context, r *record, credential *bundle.Object) error {
	work := &workv1alpha1.Work{}
	if err := l.live.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: r.Name}, work); err != nil {
		return client.IgnoreNotFound(err)
	}
	for i := range work.Spec.Manifests {
		o, err := bundle.Parse(work.Spec.Manifests[i].Raw)
		if err != nil || o.Key() != credential.Key() || o.Hash == credential.Hash {
			continue
		}
		return client.IgnoreNotFound(l.writer().ReplaceManifest(ctx, &work.ObjectMeta, i, credential.Manifest()))
	}
	return nil
}
