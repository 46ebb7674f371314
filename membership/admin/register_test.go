package admin

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestRegister(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	f.run()
	ctx := t.Context()
	bootstrap := f.token(v1alpha1.JoinTokenSpec{})
	stored := func() *registration.Bootstrap {
		t.Helper()
		var secret corev1.Secret
		if !f.get(&secret, agent.DefaultNamespace, agent.DefaultBootstrapSecret) {
			return nil
		}
		b, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
		require.NoError(t, err)
		return b
	}

	wrong := *bootstrap
	wrong.Server = "https://127.0.0.1:1"
	err := Register(ctx, f.config, &wrong, RegisterOptions{})
	var unreachable *UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.Equal(t, Hub, unreachable.Which)
	expired := *bootstrap
	expired.Token = "secret-words"
	err = Register(ctx, f.config, &expired, RegisterOptions{})
	require.ErrorIs(t, err, ErrExpired)
	require.NotContains(t, err.Error(), expired.Token)
	require.Error(t, Register(ctx, f.plane.User("nobody"), bootstrap, RegisterOptions{}))
	require.Nil(t, stored(), "failed checks change nothing")
	unexpected := func(context.Context, client.Client) error { return errors.New("a dry run changes nothing") }
	dry := RegisterOptions{DryRun: true, Prepare: unexpected, Deploy: unexpected, Wait: time.Hour}
	require.NoError(t, Register(ctx, f.config, bootstrap, dry))
	require.ErrorIs(t, Register(ctx, f.config, &expired, dry), ErrExpired, "a dry run runs the checks")
	require.Nil(t, stored(), "a dry run changes nothing")

	require.NoError(t, Register(ctx, f.config, &wrong, RegisterOptions{Unchecked: true}),
		"Unchecked skips the connection to the hub")
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, RegisterOptions{}), ErrClusterTaken)
	require.Equal(t, wrong.Server, stored().Server)
	require.NoError(t, Register(ctx, f.config, bootstrap, RegisterOptions{Replace: true}))
	deployed := 0
	deploy := func(ctx context.Context, member client.Client) error {
		var secret corev1.Secret
		deployed++
		return member.Get(ctx, client.ObjectKey{Namespace: agent.DefaultNamespace, Name: agent.DefaultBootstrapSecret},
			&secret)
	}
	require.NoError(t, Register(ctx, f.config, bootstrap, RegisterOptions{Deploy: deploy}), "a second Register succeeds")
	require.Equal(t, 1, deployed, "the credential is stored before the agent is deployed")
	failed := func(context.Context, client.Client) error { return errors.New("no such image") }
	err = Register(ctx, f.config, bootstrap, RegisterOptions{Deploy: failed, Wait: time.Hour})
	require.ErrorContains(t, err, "deploy the agent on the member: no such image")
	next := f.token(v1alpha1.JoinTokenSpec{})
	require.NoError(t, Register(ctx, f.config, next, RegisterOptions{}), "another token of the same hub replaces "+
		"the one before")
	require.Equal(t, next.TokenName, stored().TokenName)

	var invalid *membership.InvalidError
	require.ErrorAs(t, Register(ctx, f.config, nil, RegisterOptions{}), &invalid)
	require.ErrorAs(t, Register(ctx, f.config, &registration.Bootstrap{}, RegisterOptions{}), &invalid)
	require.Error(t, Register(ctx, nil, bootstrap, RegisterOptions{}))
	gone := rest.CopyConfig(f.config)
	gone.Host = "https://127.0.0.1:1"
	require.ErrorAs(t, Register(ctx, gone, bootstrap, RegisterOptions{}), &unreachable)
	require.Equal(t, Member, unreachable.Which)

	_, err = Join(ctx, f.config, f.config, JoinOptions{Name: "by-push", MemberNamespace: "push", Timeout: -1})
	require.NoError(t, err)
	require.ErrorIs(t, Register(ctx, f.config, next, RegisterOptions{Replace: true}), ErrClusterTaken,
		"the hub runs the agent of this cluster")
}
