package install_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A hub that installs agents. The runner must also be added to a fleet, which calls it with a connection to each
// member.
func Example() {
	setup := func(mgr manager.Manager) (*install.Runner, error) {
		runner, err := install.New(mgr, install.Options{Installer: &install.Manifests{Objects: objects, Version: "v1"}})
		if err != nil {
			return nil, err
		}
		return runner, hub.SetupWithManager(mgr, hub.Options{Gates: []membership.LeaveGate{runner}})
	}
	_ = setup
}

// objects returns a Namespace and a ServiceAccount. A complete agent has more objects; see package deploy.
func objects(target install.Target) ([]client.Object, error) {
	labels := map[string]string{"example.com/cluster": target.Cluster.Name}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "muster-system", Labels: labels}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-system", Name: "muster-agent",
			Labels: labels}},
	}, nil
}

// An installer that delegates to another tool, such as a GitOps controller.
func ExampleFunc() {
	installer := install.Func(func(_ context.Context, target install.Target) error {
		fmt.Println("install", target.Cluster.Name, "with the", target.Bootstrap)
		return nil
	})
	_ = installer.Install(context.Background(), install.Target{
		Cluster: &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
		Bootstrap: &registration.Bootstrap{
			Server: "https://hub.example.com:6443", Namespace: "muster-registration", TokenName: "install-east",
			Token: "a secret",
		},
	})
	// Output: install east with the bootstrap of JoinToken muster-registration/install-east at https://hub.example.com:6443
}
