package leave_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon/leave"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/work/agent"
	workleave "github.com/muster-sdk/muster/work/leave"
)

// A hub whose members remove their add-ons when they leave, and then all other Works.
func ExampleGate() {
	setup := func(mgr manager.Manager) error {
		c := mgr.GetClient()
		return hub.SetupWithManager(mgr, hub.Options{
			Gates:      []membership.LeaveGate{leave.Gate(c), workleave.Gate(c)},
			AgentRules: agent.HubRules(),
		})
	}
	_ = setup
}

// What a leave waits for is in the status of the MemberCluster.
func ExampleGate_remaining() {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	mesh := &v1alpha1.MemberAddon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "mesh",
			Finalizers: []string{v1alpha1.MemberAddonFinalizer}},
		Status: v1alpha1.MemberAddonStatus{Message: "A pre-delete hook is running. The deadline is 2026-05-01T12:15:00Z."},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(mesh).Build()
	east := membership.Member{Name: "east", Namespace: "member-east"}
	ctx := context.Background()

	gate := leave.Gate(c)
	for range 2 {
		remaining, err := gate.Remaining(ctx, east)
		fmt.Println(remaining, err)
	}

	// The controller of MemberAddons has removed it.
	if err := c.Get(ctx, client.ObjectKeyFromObject(mesh), mesh); err != nil {
		panic(err)
	}
	mesh.Finalizers = nil
	if err := c.Update(ctx, mesh); err != nil {
		panic(err)
	}
	remaining, err := gate.Remaining(ctx, east)
	fmt.Println(remaining, err)
	// Output:
	// [memberaddon/mesh] <nil>
	// [memberaddon/mesh: A pre-delete hook is running. The deadline is 2026-05-01T12:15:00Z.] <nil>
	// [] <nil>
}
