package jointoken

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// secretReader is a reader of one Secret.
type secretReader struct {
	client.Reader
	secret corev1.Secret
}

func (r secretReader) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.secret.DeepCopyInto(into.(*corev1.Secret))
	return nil
}

// TestGet_Owner checks that only the Secret of the JoinToken itself is used, and which errors are reported for other
// Secrets. The garbage collector deletes the Secret of an earlier JoinToken; an administrator must delete that of
// another program.
func TestGet_Owner(t *testing.T) {
	token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "now"}}
	for _, test := range []struct {
		name  string
		owner *metav1.OwnerReference
		want  string // part of the error; empty: the Secret is used
	}{
		{"this JoinToken", &metav1.OwnerReference{Kind: "JoinToken", Name: "east", UID: "now"}, ""},
		{"an earlier JoinToken of the same name", &metav1.OwnerReference{Kind: "JoinToken", Name: "east", UID: "before"},
			"Secret muster/east belongs to a deleted JoinToken of the same name: waiting for the garbage collector"},
		{"another JoinToken", &metav1.OwnerReference{Kind: "JoinToken", Name: "west", UID: "other"},
			"Secret muster/east does not belong to this JoinToken: delete that object"},
		{"an object of another kind", &metav1.OwnerReference{Kind: "ConfigMap", Name: "east", UID: "other"},
			"Secret muster/east does not belong to this JoinToken: delete that object"},
		{"no owner", nil, "Secret muster/east does not belong to this JoinToken: delete that object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			secret := corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "muster", Name: "east"}}
			if test.owner != nil {
				test.owner.Controller = new(true)
				secret.OwnerReferences = []metav1.OwnerReference{*test.owner}
			}
			got, err := get(t.Context(), secretReader{secret: secret}, token, secret.DeepCopy())
			if test.want == "" {
				require.NoError(t, err)
				require.Equal(t, &secret, got)
				return
			}
			require.ErrorContains(t, err, test.want)
			require.Nil(t, got)
		})
	}
}
