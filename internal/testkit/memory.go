package testkit

import (
	"context"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/apiserver"
)

// latency is the duration of a write on a server of Memory. Without it, everything would happen at one instant of
// virtual time. Tests could not interfere between two writes, and two Events of one object would have the same time and
// thereby the same name. Reads take no time, because some clients hold a mutex during discovery, and a goroutine that
// waits for a mutex stops virtual time.
const latency = 5 * time.Millisecond

func slowWrites(r apiserver.RequestInfo) *apiserver.Fault {
	switch r.Verb {
	case "create", "update", "patch", "delete":
		return &apiserver.Fault{Delay: latency}
	}
	return nil
}

// Memory starts an API server in memory for a test, and installs definitions on it, as with crds.Install. The server
// stops after everything else that the test starts. Package apiserver describes the limits of such a server.
func Memory(t testing.TB, scheme *apiruntime.Scheme,
	installs ...func(context.Context, client.Client) error) *apiserver.Server {
	t.Helper()
	s, err := apiserver.New(apiserver.Options{Faults: apiserver.FaultsFunc(slowWrites)})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	s.Restore(installed(t, scheme, installs))
	return s
}

// installations caches the states of servers with installed definitions, because an installation takes half of the time
// of a short test.
var installations struct {
	sync.Mutex
	states map[string]apiserver.Snapshot
}

// installed returns the state of a server on which definitions are installed. Its objects have other UIDs than those
// that the servers of Memory create.
func installed(t testing.TB, scheme *apiruntime.Scheme,
	installs []func(context.Context, client.Client) error) apiserver.Snapshot {
	t.Helper()
	names := []string{strconv.Itoa(time.Now().Year())} // Objects are not older than the bubble of the test: 2000 there.
	for _, install := range installs {
		names = append(names, runtime.FuncForPC(reflect.ValueOf(install).Pointer()).Name())
	}
	key := strings.Join(names, " ")
	installations.Lock()
	state, exists := installations.states[key]
	installations.Unlock()
	if exists {
		return state
	}
	template, err := apiserver.New(apiserver.Options{Seed: 1})
	require.NoError(t, err)
	defer template.Close()
	require.NoError(t, mustertest.Prepare(scheme, installs...)(t.Context(), template.Admin()))
	template.Settle()
	state = template.Save()
	installations.Lock()
	defer installations.Unlock()
	if installations.states == nil {
		installations.states = map[string]apiserver.Snapshot{}
	}
	installations.states[key] = state
	return state
}

// cores limits the concurrent tests of Virtual, because they use the processor continuously.
var cores = make(chan struct{}, runtime.GOMAXPROCS(0))

// Virtual runs a test in the virtual time of a testing/synctest bubble, in parallel with other tests. Waiting takes no
// real time there, and a busy machine does not exceed a deadline. The test needs an API server of Memory, and has no
// subtests.
func Virtual(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	cores <- struct{}{}
	defer func() { <-cores }()
	synctest.Test(t, test)
}

// Step runs a part of a test in virtual time, where subtests are not possible, and logs its name.
func Step(t *testing.T, name string, do func()) {
	t.Helper()
	t.Logf("step %q", name)
	do()
}
