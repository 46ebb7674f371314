package pool_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/muster-sdk/muster/membership/internal/pool"
)

func Example() {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	p := pool.New(nil)
	p.Use(&http.Transport{})
	client := &http.Client{Transport: p}
	response, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = response.Body.Close()
	fmt.Println(response.Status)

	p.Close()
	_, err = client.Get(server.URL) //nolint:bodyclose // it fails
	fmt.Println(errors.Is(err, pool.ErrClosed))
	// Output:
	// 404 Not Found
	// true
}
