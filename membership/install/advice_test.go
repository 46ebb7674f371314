package install

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestAdvice(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no"))
	unauthorized := apierrors.NewUnauthorized("no")
	const kubeconfig, roles = "Secret kubeconfig", "membership/install/rbac"
	for _, test := range []struct {
		reason             string
		err                error
		contains, excludes string
	}{
		{"the member forbids a request", &memberError{forbidden},
			"Grant this permission on the member to the subject of the kubeconfig in the " + kubeconfig, roles},
		{"the member rejects the credential", &memberError{fmt.Errorf("apply: %w", unauthorized)},
			"Put a valid credential into the " + kubeconfig, roles},
		{"the hub forbids a request", fmt.Errorf("get a credential: %w", forbidden), roles,
			kubeconfig},
		{"the hub rejects the credential", unauthorized, "The hub retries the installation.", kubeconfig},
		{"a request to the member fails",
			&memberError{errors.New("full")}, "full. The hub retries the installation.", kubeconfig},
		{"a request to the hub fails", errors.New("full"), "full. The hub retries the installation.", kubeconfig},
	} {
		cluster := &v1alpha1.MemberCluster{
			Spec: v1alpha1.MemberClusterSpec{KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: "kubeconfig"}}}
		got := advice(fmt.Errorf("install the agent: %w", test.err), cluster)
		require.Contains(t, got, test.contains, test.reason)
		require.NotContains(t, got, test.excludes, test.reason)
	}
}
