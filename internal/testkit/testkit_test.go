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

func TestCreated_Expect(t *testing.T) {
	c := &testkit.Created{Resource: "works"}
	transport := c.Wrap(mustertest.RoundTripper(server))
	done := c.Expect(2)
	const works = "/apis/work.muster.dev/v1alpha1/namespaces/a/works"
	for _, request := range []string{"POST " + works, "PATCH " + works + "/a", "POST /api/v1/namespaces/a/pods"} {
		require.True(t, send(t, transport, request))
	}
	select {
	case <-done:
		t.Fatal("done is closed after one of two creations")
	default:
	}
	require.True(t, send(t, transport, "POST "+works))
	<-done
}

func TestInParallel_ErrorDoesNotStopOthers(t *testing.T) {
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
	require.EqualValues(t, len(all), calls.Load(), "an error does not prevent the other calls")
}

func TestMemoryStore_SaveLoadDelete(t *testing.T) {
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

// server responds to every request: with 201 to POST and with 200 otherwise.
func server(r *http.Request) (*http.Response, error) {
	response := httptest.NewRecorder()
	if r.Method == http.MethodPost {
		response.WriteHeader(http.StatusCreated)
	}
	return response.Result(), nil
}

// send sends a request such as "GET /api/v1/pods", and reports whether the request has a response.
func send(t *testing.T, transport http.RoundTripper, request string) bool {
	t.Helper()
	var method, path string
	_, err := fmt.Sscan(request, &method, &path)
	require.NoError(t, err)
	response, err := transport.RoundTrip(httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody))
	if err == nil {
		require.NoError(t, response.Body.Close())
	}
	return err == nil
}
