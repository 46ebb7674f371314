package hub

import (
	"context"
	"fmt"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ask asks the Acceptor, which may be anybody's code.
func ask(ctx context.Context, acceptor membership.Acceptor, request *v1alpha1.JoinRequest) (verdict membership.Verdict, err error) {
	ctx, cancel := context.WithTimeout(ctx, gatePatience)
	defer cancel()
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the Acceptor panicked: %v", panicked)
		}
	}()
	if verdict, err = acceptor.Accept(ctx, request.DeepCopy()); err != nil {
		return verdict, fmt.Errorf("ask the Acceptor: %w", err)
	}
	return verdict, nil
}

// askAcceptor has the Acceptor decide on a member to which the hub brings an agent only when somebody has decided. The error is an ErrPending when as
// many as may wait for it already do: an Acceptor that is slow must not keep the hub from all other members.
func (r *members) askAcceptor(ctx context.Context, o *memberObserved) error {
	if r.options.Acceptor == nil || !o.lifecycle.AsksAcceptor() {
		return nil
	}
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	default:
		return membership.ErrPending
	}
	verdict, err := ask(ctx, r.options.Acceptor, requestFor(o.cluster))
	switch {
	case err == nil:
		o.lifecycle.Verdict = verdict
	case ctx.Err() != nil:
		return err // the hub ends, which is no fault of the Acceptor
	default:
		logf.FromContext(ctx).Error(err, "The Acceptor fails")
		o.lifecycle.NoVerdict = lifecycle.Sentence(err.Error())
	}
	return nil
}

// requestFor is a MemberCluster as the Acceptor is asked about it. It has no UID, which no request that somebody has made is without.
func requestFor(cluster *v1alpha1.MemberCluster) *v1alpha1.JoinRequest {
	return &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		Name: cluster.Name, MemberUID: cluster.UID, ClusterID: cluster.Spec.ClusterID, Labels: cluster.Labels,
	}}
}
