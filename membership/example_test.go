package membership_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Clusters that join with the token of a known data center are accepted automatically; all others wait for an
// administrator. The hub has verified the token. Labels are claims of the cluster and must not be used.
func ExampleAcceptorFunc() {
	acceptor := membership.AcceptorFunc(func(_ context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance,
		error) {
		if token := request.Spec.Token; token != nil && token.Name == "frankfurt" {
			return membership.Acceptance{Decision: membership.Accept}, nil
		}
		return membership.Acceptance{Decision: membership.Hold, Reason: "not from one of our own sites"}, nil
	})

	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		Token:  &v1alpha1.TokenProof{Name: "everybody"},
		Labels: map[string]string{"example.com/site": "frankfurt"},
	}}
	acceptance, err := acceptor.Accept(context.Background(), request)
	fmt.Println(acceptance.Decision, acceptance.Reason, err)
	// Output: Hold not from one of our own sites <nil>
}

// Members for which the hub provides an agent are accepted by a label that an administrator has set. Such a request is
// created by the hub and has no UID, unlike requests of clusters.
func ExampleAcceptor() {
	acceptor := membership.AcceptorFunc(func(_ context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance,
		error) {
		if request.UID == "" && request.Spec.Labels["example.com/site"] == "frankfurt" {
			return membership.Acceptance{Decision: membership.Accept}, nil
		}
		return membership.Acceptance{Decision: membership.Hold, Reason: "not from one of our own sites"}, nil
	})

	labels := map[string]string{"example.com/site": "frankfurt"}
	ours := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{Name: "east", Labels: labels}}
	theirs := ours.DeepCopy()
	theirs.UID = "6e3f8e0a-7f0b-4c2a-9d25-6b9c7d0d3d1c"
	for _, request := range []*v1alpha1.JoinRequest{ours, theirs} {
		acceptance, err := acceptor.Accept(context.Background(), request)
		fmt.Println(acceptance.Decision, err)
	}
	// Output:
	// Accept <nil>
	// Hold <nil>
}

// A leave waits until the backups of the member are stored elsewhere.
func ExampleGateFunc() {
	backups := []string{"backup/orders"}
	gate := membership.GateFunc("backups", func(context.Context, membership.Member) ([]string, error) {
		return backups, nil
	})

	remaining, _ := gate.Remaining(context.Background(), membership.Member{Name: "east"})
	fmt.Println(gate.Name(), "waits for", remaining)
	// Output: backups waits for [backup/orders]
}
