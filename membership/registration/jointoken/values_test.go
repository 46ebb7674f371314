package jointoken

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestValues_SameAsBootstrap checks that the values contain every field of a Bootstrap.
func TestValues_SameAsBootstrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string { return rapid.StringMatching(`[ -~]{0,40}(\n[ -~]{1,10})?`).Draw(t, label) }
		want := registration.Bootstrap{
			Server: text("server"), CA: []byte(text("CA")), Token: text("token"), TokenName: text("token name"),
			Key: rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "key"), Namespace: text("namespace"),
			HubID: text("hub"), MoveFrom: text("move from"),
		}
		if rapid.Bool().Draw(t, "expires") {
			want.ExpirationTime = time.Unix(rapid.Int64Range(1, 1<<33).Draw(t, "expiration"), 0).UTC()
		}
		clusterID := text("cluster ID")
		data, err := valuesFor(&want, clusterID)
		require.NoError(t, err)
		var values chartValues
		require.NoError(t, yaml.UnmarshalStrict(data, &values))
		key, err := base64.StdEncoding.DecodeString(values.TokenKey)
		require.NoError(t, err)
		got := registration.Bootstrap{
			Server: values.APIServerURL, CA: []byte(values.APIServerCA), Token: values.Token, TokenName: values.TokenName,
			Key: key, Namespace: values.RegistrationNamespace, HubID: values.HubID, MoveFrom: values.MoveFrom,
		}
		if values.TokenExpirationTime != "" {
			got.ExpirationTime, err = time.Parse(time.RFC3339, values.TokenExpirationTime)
			require.NoError(t, err)
		}
		require.Equal(t, want, got)
		require.Equal(t, clusterID, values.ClusterID)
	})
}

// TestValues_KeptInSecret checks that the controller writes the values with the credential, completes the Secret of an
// earlier version without a new credential, and follows a change of the JoinToken.
func TestValues_KeptInSecret(t *testing.T) { testkit.Virtual(t, testValuesKeptInSecret) }

func testValuesKeptInSecret(t *testing.T) {
	h := newHub(t, inMemory(t))
	token := h.waitFor(h.token("values", v1alpha1.JoinTokenSpec{}), v1alpha1.ReasonReady)
	complete := func(reason, clusterID string, before *corev1.Secret) {
		t.Helper()
		h.Holds(reason, func() bool {
			secret := h.secret(token)
			want, err := valuesFor(bootstrapIn(secret), clusterID)
			require.NoError(t, err)
			return string(secret.Data[registration.ValuesKey]) == string(want)
		})
		if after := h.secret(token); before != nil {
			require.Equal(t, before.Data[registration.BootstrapKey], after.Data[registration.BootstrapKey], reason)
			require.Equal(t, before.Annotations, after.Annotations, reason)
			require.Len(t, after.Data, 2, reason)
		}
	}
	complete("values are written with the credential", "", nil)
	issued := h.secret(token)
	read, err := ReadValues(t.Context(), h.Client, token)
	require.NoError(t, err)
	require.Equal(t, string(issued.Data[registration.ValuesKey]), string(read))

	earlier := issued.DeepCopy()
	delete(earlier.Data, registration.ValuesKey)
	require.NoError(t, h.Client.Update(t.Context(), earlier))
	complete("the Secret of an earlier version is completed", "", issued)
	changed := h.secret(token)
	changed.Data[registration.ValuesKey] = []byte("token: other\n")
	require.NoError(t, h.Client.Update(t.Context(), changed))
	complete("changed values are restored", "", issued)
	h.requireIdle()
	version := h.secret(token).ResourceVersion
	h.advance(token, time.Minute)
	h.requireIdle()
	require.Equal(t, version, h.secret(token).ResourceVersion, "a reconcile writes nothing")

	old := token.DeepCopy()
	token.Spec.ClusterID = "east-id"
	if err := h.Client.Patch(t.Context(), token, client.MergeFrom(old)); err == nil {
		complete("the values follow spec.clusterID", "east-id", issued)
	}

	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(token), token))
	old = token.DeepCopy()
	token.Spec.TTLSeconds = new(int64(1))
	require.NoError(t, h.Client.Patch(t.Context(), token, client.MergeFrom(old)))
	h.advance(token, time.Hour)
	h.waitFor(token, v1alpha1.ReasonExpired)
	require.NotContains(t, h.secret(token).Data, registration.ValuesKey, "the Secret of an expired token has no values")
	_, err = ReadValues(t.Context(), h.Client, token)
	require.ErrorIs(t, err, ErrEnded)
}
