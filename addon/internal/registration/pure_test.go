package registration

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

func TestRecord_RenewalsAreSpread(t *testing.T) {
	issued := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := record{Issued: metav1.NewTime(issued), Expires: metav1.NewTime(issued.Add(1000 * time.Hour))}
	const slots = 15
	var in [slots]int
	for i := range 1500 {
		holder := fmt.Sprintf("member-%d/x", i)
		at := c.renewAt(holder).Sub(issued)
		require.GreaterOrEqual(t, at, 600*time.Hour)
		require.Less(t, at, 750*time.Hour)
		require.Equal(t, at, c.renewAt(holder).Sub(issued), "want the same time for each call")
		in[(at-600*time.Hour)/(150*time.Hour/slots)]++
	}
	for slot, n := range in {
		require.Less(t, n, 200, "want fewer than 200 of 1500 renewals in each of %[2]d slots, got %[1]d in slot %[3]d", n,
			slots, slot)
	}
}

func TestRecordOf(t *testing.T) {
	secret := func(annotation string, keys ...string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{recordAnnotation: annotation}},
			Data: map[string][]byte{}}
		for _, key := range keys {
			s.Data[key] = []byte("x")
		}
		return s
	}
	for _, test := range []struct {
		reason string
		secret *corev1.Secret
		want   record
	}{
		{"no Secret", nil, record{}},
		{"an empty annotation", secret(""), record{}},
		{"an invalid annotation", secret(`{"for":7}`), record{}},
		{"a missing token", secret(`{"for":"a","credential":"Token"}`, "tls.key"), record{For: "a"}},
		{"a missing key", secret(`{"for":"a","credential":"Certificate"}`, "tls.crt"), record{For: "a"}},
		{"an unknown credential type", secret(`{"for":"a","credential":"Passkey"}`, "tls.crt"), record{For: "a"}},
		{"the key of a pending certificate", secret(`{"for":"a"}`, "tls.key"), record{For: "a"}},
		{"a complete record", secret(`{"for":"a","credential":"Token"}`, "token"),
			record{For: "a", Credential: v1alpha1.RegistrationToken}},
	} {
		require.Equal(t, test.want, recordOf(test.secret), test.reason)
	}
}

// TestNames_Unambiguous checks members a and a-b and add-ons x and x-y: no name of one is a name, or a prefix of a
// name, of another.
func TestNames_Unambiguous(t *testing.T) {
	r := &Registrar{namespace: "r"}
	seen := map[string]client.ObjectKey{}
	for _, namespace := range []string{"a", "a-b", "a-b-x", "b", "muster"} {
		for _, addon := range []string{"x", "x-y", "b-x", "b-x-y", "addon"} {
			key := client.ObjectKey{Namespace: namespace, Name: addon}
			for _, name := range []string{r.secretKey(key).Name, userPrefix(key), namespace + "/" + objectName(addon)} {
				require.NotContains(t, seen, name)
				seen[name] = key
			}
			require.Equal(t, key, MemberAddonOf(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Namespace: "r", Name: r.secretKey(key).Name, Labels: map[string]string{v1alpha1.AddonLabel: addon}}}))
			require.NotEqual(t, membership.AgentName, objectName(addon))
		}
	}
}

func TestNew_InvalidOptions(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	for _, test := range []struct {
		reason, want string
		options      Options
	}{
		{"no Client", "Client and Live", Options{Live: c}},
		{"no Server and no Config", "Options.Server", Options{Client: c, Live: c}},
		{"an insecure Server", "Options.Server", Options{Client: c, Live: c, Server: "http://hub"}},
		{"an insecure host of Config", "Options.Server",
			Options{Client: c, Live: c, Config: &rest.Config{Host: "http://localhost:8080"}}},
		{"a missing CA file of Config", "Options.CA from Config",
			Options{Client: c, Live: c,
				Config: &rest.Config{Host: "https://hub", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}}},
		{"no CA", "Options.CA must", Options{Client: c, Live: c, Server: "https://hub"}},
		{"an invalid CA", "Options.CA must", Options{Client: c, Live: c, Server: "https://hub", CA: []byte("x")}},
	} {
		_, err := New(test.options)
		require.ErrorContains(t, err, test.want, test.reason)
	}
}
