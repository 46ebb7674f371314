package hub_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/hub"
)

// rewinding answers all lists of one MemberCluster except the first with resourceVersion 1, like an API server whose
// store was restored to its beginning.
type rewinding struct {
	http.RoundTripper
	rewound *atomic.Bool // the first list was answered
}

func (r rewinding) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	isVersionCheck := strings.HasSuffix(request.URL.Path, "/memberclusters") && request.URL.Query().Get("limit") == "1"
	if err != nil || response.StatusCode != http.StatusOK || !isVersionCheck || !r.rewound.Swap(true) {
		return response, err
	}
	var list map[string]any
	err = json.NewDecoder(response.Body).Decode(&list)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	list["metadata"].(map[string]any)["resourceVersion"] = "1"
	body, err := json.Marshal(list)
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Del("Content-Length")
	return response, err
}

// TestRewound_EndsEveryController checks that a hub whose store is restored while it runs ends with its whole manager,
// including other controllers of the program: their caches are as stale as the hub's.
func TestRewound_EndsEveryController(t *testing.T) {
	testkit.Virtual(t, testRewoundEndsEveryController)
}

func testRewoundEndsEveryController(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{}) // installs the permissions
	h.stop()
	var rewound atomic.Bool
	config := rest.CopyConfig(h.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return rewinding{next, &rewound} })
	mgr, err := manager.New(config, manager.Options{
		Scheme: newScheme(), Logger: testLogger(t, "hub"), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	var options hub.Options
	address(h.plane, &options)
	require.NoError(t, hub.SetupWithManager(mgr, options))
	started, ended := make(chan struct{}), make(chan struct{})
	// stands for placements, WorkSets and add-ons
	require.NoError(t, mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		close(ended)
		return nil
	})))
	failed := make(chan error, 1)
	go func() { failed <- mgr.Start(t.Context()) }()
	within := time.After(5 * time.Minute)
	for _, step := range []<-chan struct{}{started, ended} {
		select {
		case <-step:
		case err := <-failed:
			failed <- err // the error may be received first
			<-step
		case <-within:
			t.Fatal("the manager has not started or not ended")
		}
	}
	var want *storeversion.RewoundError
	require.ErrorAs(t, <-failed, &want)
}
