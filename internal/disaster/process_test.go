//go:build unix

package disaster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/mustertest"
)

// replicaVariable names the file with the options of a hub that the test binary runs instead of tests.
const replicaVariable = "MUSTER_DISASTER_REPLICA"

// replicaOptions are the options of a hub in a separate process.
type replicaOptions struct {
	Host          string
	CA, Cert, Key []byte
	Election      string // kubeconfig of the user that reads and writes the Lease of the election
	// The process suspends itself before it sends its first request with this method and prefix of the path.
	PauseMethod, PausePath string
}

// A replica writes these lines to its standard output. The last one is followed by the status code.
const (
	replicaPauses   = "PAUSES"
	replicaAnswered = "ANSWERED "
)

// electionLease is the duration of Leases of the election. They are shorter than by default, so that another replica
// leads sooner, but long enough for a busy machine. At full length, the duration is the default.
var electionLease = atFullLength(15*time.Second, 12*time.Second)

// pause is the minimum time for which a leader is suspended. The suspension always lasts longer than its Lease: until
// another replica has completed the step.
var pause = atFullLength(time.Minute, 0)

func electionOptions(config *rest.Config) manager.Options {
	return manager.Options{
		LeaderElection: true, LeaderElectionID: "muster-hub", LeaderElectionNamespace: "default",
		LeaderElectionConfig:          config,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(electionLease), RenewDeadline: new(electionLease * 3 / 4),
		RetryPeriod: new(500 * time.Millisecond),
	}
}

// runAsReplica runs a hub if this process was started as a replica, and returns true when the hub has ended.
func runAsReplica() bool {
	file := os.Getenv(replicaVariable)
	if file != "" {
		fmt.Fprintln(os.Stderr, "Replica of the hub ended:", runReplica(file))
	}
	return file != ""
}

// runReplica is the process of a hub. It ends with an error when it is not the leader anymore.
func runReplica(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var o replicaOptions
	if err := json.Unmarshal(data, &o); err != nil {
		return err
	}
	election, err := clientcmd.BuildConfigFromFlags("", o.Election)
	if err != nil {
		return err
	}
	config := &rest.Config{
		Host: o.Host, TLSClientConfig: rest.TLSClientConfig{CAData: o.CA, CertData: o.Cert, KeyData: o.Key}, QPS: -1,
	}
	answered := make(chan struct{})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return o.pause(next, answered) })
	options := electionOptions(election)
	options.Logger = logr.Discard()
	err = serveHub(context.Background(), config, options, assembly.HubOptions{
		Addons: addon.Options{Agents: []addon.Agent{greeter{}}}, SkipDefinitions: true,
		Without: []assembly.Part{assembly.PartTenancy}, // The hub has one user.
	})
	if o.PauseMethod != "" {
		select {
		case <-answered:
		case <-time.After(time.Minute):
		}
	}
	return err
}

// pause suspends the process before it sends the request of the options, like a machine that stops at that moment.
// The request is sent when the process continues, even though the manager ends by then.
func (o *replicaOptions) pause(next http.RoundTripper, answered chan<- struct{}) http.RoundTripper {
	var paused atomic.Bool
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		matches := r.Method == o.PauseMethod && strings.HasPrefix(r.URL.Path, o.PausePath)
		if !matches || !paused.CompareAndSwap(false, true) {
			return next.RoundTrip(r)
		}
		defer close(answered)
		fmt.Println(replicaPauses)
		before := time.Now()
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return nil, err
		}
		// The signal may stop this thread a moment later. The process is suspended for several seconds.
		for time.Since(before) < time.Second {
			<-time.After(10 * time.Millisecond)
		}
		return o.send(next, r)
	})
}

// send sends a request although its manager ends, as if the process had sent the request earlier. The connection may
// have ended meanwhile.
func (o *replicaOptions) send(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	for attempt := 1; ; attempt++ {
		again := r.Clone(context.WithoutCancel(r.Context()))
		if r.GetBody != nil {
			var err error
			if again.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		response, err := next.RoundTrip(again)
		switch {
		case err == nil:
			fmt.Printf("%s%d\n", replicaAnswered, response.StatusCode)
			return response, nil
		case attempt == 3:
			fmt.Printf("%s%v\n", replicaAnswered, err)
			return nil, err
		}
	}
}

// replica is a hub in a separate process.
type replica struct {
	cmd   *exec.Cmd
	ended chan error

	mu          sync.Mutex
	lines       []string
	pausedSince time.Time
}

// startReplica starts a hub that suspends itself before a request. It ends with the test.
func (w *system) startReplica(method, path string) *replica {
	t := w.t
	t.Helper()
	options, err := json.Marshal(replicaOptions{
		Host: w.config.Host, CA: w.config.CAData, Cert: w.config.CertData, Key: w.config.KeyData,
		Election: w.plane.Kubeconfig(), PauseMethod: method, PausePath: path,
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "replica.json")
	require.NoError(t, os.WriteFile(file, options, 0o600))
	program, err := os.Executable()
	require.NoError(t, err)
	r := &replica{cmd: exec.Command(program), ended: make(chan error, 1)}
	r.cmd.Env = append(os.Environ(), replicaVariable+"="+file)
	r.cmd.Stderr = os.Stderr
	output, err := r.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			r.mu.Lock()
			r.lines = append(r.lines, lines.Text())
			r.mu.Unlock()
		}
		r.ended <- r.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-done
	})
	return r
}

// paused returns an error until the replica has suspended itself.
func (r *replica) paused() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if slices.Contains(r.lines, replicaPauses) {
		if r.pausedSince.IsZero() {
			r.pausedSince = time.Now()
		}
		return nil
	}
	return errors.New("the replica has not sent the request")
}

// statusCode returns the status code of the request before which the replica was paused; empty: no response yet.
func (r *replica) statusCode() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if code, ok := strings.CutPrefix(line, replicaAnswered); ok {
			return code
		}
	}
	return ""
}

// resume lets the replica continue after the minimum pause, and returns the status code of its request when the process
// has ended because it is not the leader anymore.
func (r *replica) resume(t testing.TB) string {
	t.Helper()
	<-time.After(time.Until(r.pausedSince.Add(pause)))
	require.NoError(t, r.cmd.Process.Signal(syscall.SIGCONT))
	select {
	case err := <-r.ended:
		require.Error(t, err, "a leader without its Lease ends with an error")
	case <-time.After(timeout):
		t.Fatal("the paused replica does not end although another replica leads")
	}
	return r.statusCode()
}
