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
		reason        string
		err           error
		says, saysNot string
	}{
		{"the member does not let the hub do it", &memberError{forbidden},
			"Grant this permission on the member to the subject of the kubeconfig in the " + kubeconfig, roles},
		{"the member does not know the hub", &memberError{fmt.Errorf("apply: %w", unauthorized)},
			"Put a valid credential into the " + kubeconfig, roles},
		{"the hub may not write a JoinToken, which no kubeconfig mends", fmt.Errorf("get a credential: %w", forbidden), roles,
			kubeconfig},
		{"the hub's own account has ended", unauthorized, "The hub retries the installation.", kubeconfig},
		{"the member cannot do it", &memberError{errors.New("full")}, "full. The hub retries the installation.", kubeconfig},
		{"the hub cannot do it", errors.New("full"), "full. The hub retries the installation.", kubeconfig},
	} {
		cluster := &v1alpha1.MemberCluster{
			Spec: v1alpha1.MemberClusterSpec{KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: "kubeconfig"}}}
		got := advice(fmt.Errorf("install the agent: %w", test.err), cluster)
		require.Contains(t, got, test.says, test.reason)
		require.NotContains(t, got, test.saysNot, test.reason)
	}
}
