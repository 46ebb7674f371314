package hub

import (
	"context"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ask calls the Acceptor, which is code of the product, with a timeout. It returns a panic as an error.
func ask(ctx context.Context, acceptor membership.Acceptor,
	request *v1alpha1.JoinRequest) (acceptance membership.Acceptance,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, gateTimeout)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the Acceptor panicked: %v", panicked)
		}
	}()
	if acceptance, err = acceptor.Accept(ctx, request.DeepCopy()); err != nil {
		return acceptance, fmt.Errorf("call the Acceptor: %w", err)
	}
	return acceptance, nil
}
