package membership_test

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Clusters that come with the token of one's own data center come in by themselves; all others wait for an administrator.
// The hub has verified the token. The labels would be no help: they are what the cluster says of itself.
func ExampleAcceptorFunc() {
	acceptor := membership.AcceptorFunc(func(_ context.Context, request *v1alpha1.JoinRequest) (membership.Verdict, error) {
		if token := request.Spec.Token; token != nil && token.Name == "frankfurt" {
			return membership.Verdict{Decision: membership.Accept}, nil
		}
		return membership.Verdict{Decision: membership.Hold, Reason: "not from one of our own sites"}, nil
	})

	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		Token:  &v1alpha1.TokenProof{Name: "everybody"},
		Labels: map[string]string{"example.com/site": "frankfurt"},
	}}
	verdict, err := acceptor.Accept(context.Background(), request)
	fmt.Println(verdict.Decision, verdict.Reason, err)
	// Output: Hold not from one of our own sites <nil>
}

// Members that the hub is to bring an agent to come in by the label that an administrator has given them. Such a request is the hub's own: it has no
// UID, which those that clusters make always have.
func ExampleAcceptor() {
	acceptor := membership.AcceptorFunc(func(_ context.Context, request *v1alpha1.JoinRequest) (membership.Verdict, error) {
		if request.UID == "" && request.Spec.Labels["example.com/site"] == "frankfurt" {
			return membership.Verdict{Decision: membership.Accept}, nil
		}
		return membership.Verdict{Decision: membership.Hold, Reason: "not from one of our own sites"}, nil
	})

	labels := map[string]string{"example.com/site": "frankfurt"}
	ours := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{Name: "east", Labels: labels}}
	theirs := ours.DeepCopy()
	theirs.UID = "6e3f8e0a-7f0b-4c2a-9d25-6b9c7d0d3d1c"
	for _, request := range []*v1alpha1.JoinRequest{ours, theirs} {
		verdict, err := acceptor.Accept(context.Background(), request)
		fmt.Println(verdict.Decision, err)
	}
	// Output:
	// Accept <nil>
	// Hold <nil>
}

// A leave waits until the member's backups are elsewhere.
func ExampleGateFunc() {
	backups := []string{"backup/orders"}
	gate := membership.GateFunc("backups", func(context.Context, membership.Member) ([]string, error) {
		return backups, nil
	})

	remaining, _ := gate.Remaining(context.Background(), membership.Member{Name: "east"})
	fmt.Println(gate.Name(), "waits for", remaining)
	// Output: backups waits for [backup/orders]
}
