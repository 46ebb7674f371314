package agent

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/heartbeat"
)

// TestHubWrites_HeartbeatsDoNotWait checks that the writes of the agent and its companions wait for one limit together,
// and that reads and heartbeats do not. A write whose context ends while it waits is not sent.
func TestHubWrites_HeartbeatsDoNotWait(t *testing.T) {
	var mu sync.Mutex
	count := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		count[r.Method+" "+r.URL.Path]++
	}))
	defer server.Close()
	c, err := connect(registered{Server: server.URL, Namespace: "member-a", Credential: credential{Token: "t"}}, nil,
		func(*rest.Config) {}, heartbeat.BeaterOptions{})
	require.NoError(t, err)
	defer c.close()
	const burst = 6
	c.limitWrites(Options{HubWritesPerSecond: burst / 2}.hubWrites())
	lent, err := c.companionConfig()
	require.NoError(t, err)
	companion, err := rest.HTTPClientFor(lent)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	send := func(client *http.Client, method, path string) error {
		request, err := http.NewRequestWithContext(ctx, method, server.URL+path, bytes.NewReader(nil))
		require.NoError(t, err)
		response, err := client.Do(request)
		if err == nil {
			err = response.Body.Close()
		}
		return err
	}
	var flood sync.WaitGroup
	start := time.Now()
	for range 10 * burst {
		flood.Go(func() { _ = send(companion, http.MethodPatch, "/works") })
		flood.Go(func() { _ = send(c.rest.client, http.MethodPut, "/membership") })
	}
	for range 3 * burst {
		require.NoError(t, send(c.beats.client, http.MethodPut, "/lease"))
		require.NoError(t, send(companion, http.MethodGet, "/works"))
	}
	elapsed := time.Since(start)
	cancel()
	flood.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Equal(t, 3*burst, count["PUT /lease"])
	require.Equal(t, 3*burst, count["GET /works"])
	written := count["PATCH /works"] + count["PUT /membership"]
	require.LessOrEqual(t, written, burst+int(elapsed.Seconds()*burst/2)+1, "after %s", elapsed)
	require.Less(t, elapsed, 5*time.Second, "heartbeats and reads do not wait for the flood")
	require.Nil(t, Options{HubWritesPerSecond: -1}.hubWrites())
	require.Equal(t, DefaultHubWritesPerSecond, Options{}.withDefaults().HubWritesPerSecond)
}
