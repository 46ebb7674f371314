package fleet

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// BenchmarkConnect connects to 100 members, of which 20 accept connections and never respond, and to the other 80
// alone. It reports the time until the last of the 80 is connected, in both cases, and the ratio of the two: 1 means
// that the members that do not respond cost nothing. The floor is 80 members, connected by the same code, without
// other members.
func BenchmarkConnect(b *testing.B) {
	const good, holes = 80, 20
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "x"}}`)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	hole, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	require.NoError(b, err)
	defer hole.Close() // the system accepts connections, and no process responds
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	access := func(url string) *kubeconfig.Access {
		parsed, err := kubeconfig.Parse(map[string][]byte{"server": []byte(url), "token": []byte("x"), "ca.crt": ca}, "",
			kubeconfig.Options{})
		require.NoError(b, err)
		return parsed
	}
	toGood, toHole := access(server.URL), access("https://"+hole.Addr().String())

	var alone, beside time.Duration
	for b.Loop() {
		alone += connectAll(b, good, 0, toGood, toHole)
		beside += connectAll(b, good, holes, toGood, toHole)
	}
	perRound := float64(b.N) * float64(time.Millisecond)
	b.ReportMetric(float64(alone)/perRound, "alone-ms")
	b.ReportMetric(float64(beside)/perRound, "beside-20-black-holes-ms")
	b.ReportMetric(float64(beside)/float64(alone), "ratio")
}

// connectAll returns the time until all members that respond are connected. The members that do not respond are
// created first.
func connectAll(b *testing.B, good, holes int, toGood, toHole *kubeconfig.Access) time.Duration {
	b.Helper()
	options, err := Options{ProbeTimeout: 10 * time.Second}.withDefaults()
	require.NoError(b, err)
	connected := make(arrivals, good+holes)
	f := &Fleet{
		options: options, log: logr.Discard(), metrics: newMetrics(nil),
		current: duties{live: liveClusters{runner: connected}},
	}
	f.goroutines = newGoroutines(func(name string) *member { return newMember(f, name) })
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	observe := func(kind string, access *kubeconfig.Access, n int) {
		for i := range n {
			name := fmt.Sprintf("%s-%d", kind, i)
			cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
			cluster.Spec.KubeConfigSecretRef = ref
			cluster.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionJoined, Status: metav1.ConditionTrue}}
			f.goroutines.notify(name, &observed{cluster: cluster, secret: secretSeen{access: access}})
		}
	}
	observe("hole", toHole, holes)
	observe("good", toGood, good)
	began := time.Now()
	go func() { ended <- f.Start(ctx) }()
	for range good {
		<-connected
	}
	took := time.Since(began)
	cancel()
	require.NoError(b, <-ended)
	return took
}

// arrivals receives the name of each connected member.
type arrivals chan string

func (arrivals) Name() string { return "arrivals" }

func (a arrivals) Run(ctx context.Context, member Connected) error {
	a <- member.Cluster.Name
	<-ctx.Done()
	return nil
}
