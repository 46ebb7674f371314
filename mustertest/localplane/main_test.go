package localplane

import (
	"errors"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The timeout is generous, because all packages may be tested at the same time on two cores. The expected state is
// usually reached much earlier.
const (
	eventually = time.Minute
	tick       = 20 * time.Millisecond
)

var shared = Shared{Options: Options{Name: "shared", Nodes: 2, NodeCapacity: capacity}}

var capacity = corev1.ResourceList{
	corev1.ResourceCPU:    resource.MustParse("3"),
	corev1.ResourceMemory: resource.MustParse("5Gi"),
	corev1.ResourcePods:   resource.MustParse("7"),
}

func TestMain(m *testing.M) {
	if os.Getenv(crashingVariable) != "" {
		crash()
	}
	os.Exit(Run(m, &shared))
}

func clientFor(t *testing.T, cfg *rest.Config) *kubernetes.Clientset {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	t.Cleanup(httpClient.CloseIdleConnections)
	client, err := kubernetes.NewForConfigAndClient(cfg, httpClient)
	require.NoError(t, err)
	return client
}

// requireRefused waits until connections to a killed API server are refused. A request on a connection that was open
// before fails with EOF instead.
func requireRefused(t *testing.T, cfg *rest.Config) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(get(t, cfg), syscall.ECONNREFUSED) }, eventually, tick,
		"connections are not refused")
}

// get sends one request to the API server without retries. A clientset would retry when a connection breaks.
func get(t *testing.T, cfg *rest.Config) error {
	t.Helper()
	client, err := rest.HTTPClientFor(cfg)
	require.NoError(t, err)
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cfg.Host+"/api", nil)
	require.NoError(t, err)
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close() // Read only.
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// verifyNoLeaks fails the test if it ends with more goroutines than exist now.
func verifyNoLeaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}
