package testkit_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
)

func TestCreated(t *testing.T) {
	c := &testkit.Created{Resource: "works"}
	over := c.Wrap(mustertest.RoundTripper(server))
	done := c.Expect(2)
	const works = "/apis/work.muster.dev/v1alpha1/namespaces/a/works"
	for _, request := range []string{"POST " + works, "PATCH " + works + "/a", "POST /api/v1/namespaces/a/pods"} {
		require.True(t, send(t, over, request))
	}
	select {
	case <-done:
		t.Fatal("there is one")
	default:
	}
	require.True(t, send(t, over, "POST "+works))
	<-done
}

func TestInParallel(t *testing.T) {
	var calls atomic.Int32
	bad := errors.New("bad")
	all := make([]int, 5*testkit.Together)
	err := testkit.InParallel(all, func(int) error {
		if calls.Add(1) == 3 {
			return bad
		}
		return nil
	})
	require.ErrorIs(t, err, bad)
	require.EqualValues(t, len(all), calls.Load(), "one that fails keeps no other from being done")
}

func TestMemoryStore(t *testing.T) {
	var s testkit.MemoryStore
	for _, want := range [][]byte{[]byte("a"), []byte("b"), nil} {
		require.NoError(t, s.Save(t.Context(), want))
		got, err := s.Load(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.NoError(t, s.Save(t.Context(), []byte("a")))
	require.NoError(t, s.Delete(t.Context()))
	got, err := s.Load(t.Context())
	require.NoError(t, err)
	require.Nil(t, got)
}

// server answers every request: 201 to POST and 200 otherwise.
func server(r *http.Request) (*http.Response, error) {
	answer := httptest.NewRecorder()
	if r.Method == http.MethodPost {
		answer.WriteHeader(http.StatusCreated)
	}
	return answer.Result(), nil
}

// send sends a request such as "GET /api/v1/pods", and reports whether it was answered.
func send(t *testing.T, over http.RoundTripper, request string) bool {
	t.Helper()
	var method, path string
	_, err := fmt.Sscan(request, &method, &path)
	require.NoError(t, err)
	response, err := over.RoundTrip(httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	return err == nil
}
