package admin_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/admin"
)

// An error contains the next step, and programs can match it.
func ExampleJoin() {
	nowhere := &rest.Config{Host: "https://127.0.0.1:1"}
	_, err := admin.Join(context.Background(), nowhere, nowhere, admin.JoinOptions{Name: "east"})

	if failed, is := errors.AsType[*admin.PreflightError](err); is {
		for _, finding := range failed.Findings {
			fmt.Println(finding.Check)
		}
	}
	if unreachable, is := errors.AsType[*admin.UnreachableError](err); is {
		fmt.Println("the first finding is of the", unreachable.Which)
	}
	// Output:
	// reach the hub
	// reach the member
	// the first finding is of the hub
}

// A token is created on the hub, and registered on a cluster elsewhere.
func ExampleRegister() {
	register := func(ctx context.Context, hub, member *rest.Config) error {
		_, bootstrap, err := admin.CreateToken(ctx, hub, admin.TokenOptions{Name: "edge"})
		if err != nil {
			return err
		}
		return admin.Register(ctx, member, bootstrap, admin.RegisterOptions{
			Progress: func(step admin.Step) { fmt.Fprintln(os.Stderr, step.Doing, step.Detail) },
		})
	}
	err := register(context.Background(), nil, nil)
	fmt.Println(err)
	// Output: there is no config for the hub
}
