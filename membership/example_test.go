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
