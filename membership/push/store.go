package push

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// storeName returns the name of the Secret with the record of a member's agent. The UID makes it unique, regardless of
// the names of members and other Secrets.
func storeName(cluster *v1alpha1.MemberCluster) string { return "agent-" + string(cluster.UID) }

// ownedSecrets creates Secrets that the MemberCluster owns, so that they are garbage collected with it.
type ownedSecrets struct {
	corev1client.SecretInterface
	owner *v1alpha1.MemberCluster
}

// Create creates a Secret with its owner.
func (s ownedSecrets) Create(ctx context.Context, secret *corev1.Secret,
	options metav1.CreateOptions) (*corev1.Secret, error) {
	secret = secret.DeepCopy()
	secret.ObjectMeta = ownedBy(s.owner, secret.ObjectMeta)
	return s.SecretInterface.Create(ctx, secret, options)
}

// ownedBy adds the owner to the metadata of an object.
func ownedBy(owner *v1alpha1.MemberCluster, object metav1.ObjectMeta) metav1.ObjectMeta {
	object.Labels = map[string]string{membership.MemberLabel: owner.Name}
	object.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCluster", Name: owner.Name, UID: owner.UID,
	}}
	return object
}
