package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestCreateToken(t *testing.T) {
	testkit.Virtual(t, testCreateToken)
}

func testCreateToken(t *testing.T) {
	f := newFleet(t, newMemory(t))
	ctx := t.Context()
	options := TokenOptions{Name: "edge", Spec: v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(3600)), AutoAccept: true},
		Timeout: 600 * time.Millisecond}
	_, _, err := CreateToken(ctx, f.config, options)
	var timeout *TimeoutError
	require.ErrorAs(t, err, &timeout)
	require.Contains(t, timeout.Reason, "check that the controller of the hub is running")

	f.run()
	options.Timeout = timeLimit
	token, bootstrap, err := CreateToken(ctx, f.config, options)
	require.NoError(t, err, "CreateToken continues with the existing JoinToken")
	require.Equal(t, "edge", bootstrap.TokenName)
	require.WithinDuration(t, token.CreationTimestamp.Add(time.Hour), token.Status.ExpirationTime.Time, time.Second)
	require.NotContains(t, fmt.Sprintf("%v %+v", bootstrap, bootstrap), bootstrap.Token)
	again, same, err := CreateToken(ctx, f.config, options)
	require.NoError(t, err)
	require.Equal(t, token.UID, again.UID)
	require.Equal(t, bootstrap.Key, same.Key)

	other := options
	other.Spec.AutoAccept = false
	_, _, err = CreateToken(ctx, f.config, other)
	require.ErrorIs(t, err, ErrNameTaken)

	first, _, err := CreateToken(ctx, f.config, TokenOptions{})
	require.NoError(t, err)
	second, _, err := CreateToken(ctx, f.config, TokenOptions{})
	require.NoError(t, err)
	require.NotEqual(t, first.Name, second.Name, "each call without a name creates another JoinToken")

	_, _, err = CreateToken(ctx, f.config,
		TokenOptions{Spec: v1alpha1.JoinTokenSpec{Type: v1alpha1.JoinTokenBootstrapToken}})
	var invalid *membership.InvalidError
	require.ErrorAs(t, err, &invalid, "this hub does not support bootstrap tokens")
	require.Equal(t, "spec.type", invalid.Field)
	var left v1alpha1.JoinTokenList
	require.NoError(t, f.c.List(ctx, &left))
	for _, token := range left.Items {
		require.NotEqual(t, v1alpha1.JoinTokenBootstrapToken, token.Spec.Type, "a rejected call leaves no JoinToken")
	}

	short := TokenOptions{Name: "short", Spec: v1alpha1.JoinTokenSpec{TTLSeconds: new(int64(1))}}
	mustertest.Holds(f.t, timeLimit, "the JoinToken expires",
		func() bool { _, _, err = CreateToken(ctx, f.config, short); return err != nil })
	require.ErrorIs(t, err, ErrExpired)
}

func TestCreateToken_InvalidOptions(t *testing.T) {
	for _, test := range []struct {
		reason  string
		options TokenOptions
	}{
		{"an invalid name", TokenOptions{Name: "Edge!"}},
		{"a reserved label",
			TokenOptions{Spec: v1alpha1.JoinTokenSpec{Labels: map[string]string{"muster.dev/x": "y"}}}},
	} {
		_, _, err := CreateToken(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, test.options)
		var invalid *membership.InvalidError
		require.ErrorAs(t, err, &invalid, test.reason)
	}
	_, _, err := CreateToken(t.Context(), &rest.Config{Host: "https://127.0.0.1:1"}, TokenOptions{})
	var unreachable *UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.Equal(t, Hub, unreachable.Which)
}
