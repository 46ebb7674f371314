package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
)

const (
	readyPath    = "/readyz"
	identityPath = "/api/v1/namespaces/" + metav1.NamespaceSystem
	// maxAnswer limits the size of a response; a namespace is smaller.
	maxAnswer = 1 << 20
)

// way is the connection to a member, while it is the same member and has a Secret.
type way struct {
	live     *kubeconfig.Live
	probe    *http.Client
	host     string // the address of the probe's requests
	end      func() // closes the probe's connections
	identity string // UID of kube-system, if known
	known    atomic.Bool
	limits   limits
}

func newWay(access *kubeconfig.Access, o *Options) (*way, error) {
	live, err := kubeconfig.NewLive(access)
	if err != nil {
		return nil, err
	}
	w := &way{live: live}
	w.limits.bytes, w.limits.timeout = o.MaxResponseBytes, o.ResponseTimeout
	config, takeBack, err := live.Lend()
	if err != nil {
		return nil, err
	}
	if w.probe, err = rest.HTTPClientFor(config); err != nil {
		takeBack()
		return nil, fmt.Errorf("prepare a connection to %s: %w", access.Server(), err)
	}
	w.host, w.end = config.Host, takeBack
	return w, nil
}

// current reports whether the connection uses the current Secret, and was verified to lead to the right cluster.
func (w *way) current(access *kubeconfig.Access) bool {
	return w.known.Load() && w.live.Access().Revision() == access.Revision()
}

var errUnknown = errors.New("the identity of the member is not verified yet: the member has not responded to the hub")

// lend returns a config that sends no request before the member's UID is verified, because the Secret may lead to
// another cluster.
func (w *way) lend() (*rest.Config, func(), error) {
	config, takeBack, err := w.live.Lend()
	if err != nil {
		return nil, nil, err
	}
	config.Wrap(w.limits.wrap)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return guard{w, next} })
	return config, takeBack, nil
}

type guard struct {
	way  *way
	next http.RoundTripper
}

func (g guard) RoundTrip(request *http.Request) (*http.Response, error) {
	if !g.way.known.Load() {
		if request.Body != nil {
			_ = request.Body.Close()
		}
		return nil, errUnknown
	}
	return g.next.RoundTrip(request)
}

// WrappedRoundTripper returns the wrapped transport. client-go uses it to close connections.
func (g guard) WrappedRoundTripper() http.RoundTripper { return g.next }

// ready probes the member with readyPath.
func (w *way) ready(ctx context.Context) finding {
	_, status, err := w.get(ctx, readyPath)
	return evaluateResponse(readyPath, status, err)
}

// identify determines the identity of the cluster. The identity is empty unless the member is reachable.
func (w *way) identify(ctx context.Context) (identity string, _ finding) {
	body, status, err := w.get(ctx, identityPath)
	var namespace metav1.PartialObjectMetadata
	if status == http.StatusOK && err == nil {
		if err = json.Unmarshal(body, &namespace); err != nil || namespace.UID == "" {
			err = errors.New("the response is not a namespace")
		}
	} else if status == http.StatusNotFound {
		err = errors.New("the namespace does not exist")
	}
	return string(namespace.UID), evaluateResponse(identityPath, status, err)
}

func (w *way) get(ctx context.Context, path string) (body []byte, status int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.host+path, http.NoBody)
	if err != nil {
		return nil, 0, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := w.probe.Do(request)
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	body, err = io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return body, response.StatusCode, err
}

// follow replaces the Access of the connection. The new one must lead to the same member.
func (w *way) follow(access *kubeconfig.Access, identity string) error {
	if err := w.live.Replace(access); err != nil {
		return err
	}
	w.identity = identity
	w.known.Store(true)
	return nil
}
