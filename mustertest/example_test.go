package mustertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/muster-sdk/muster/mustertest"
)

// A client crashes at its second write: the server carries out the write, and the client receives no response.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	counter, crash := &mustertest.RequestCounter{}, mustertest.NewCrash(2, mustertest.ResponseLost)
	config := &rest.Config{Host: server.URL, WrapTransport: transport.Wrappers(counter.Wrap, crash.Wrap)}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	for range 3 {
		response, err := client.Post(server.URL+"/api/v1/namespaces/shop/configmaps", "application/json", nil)
		if err == nil {
			err = response.Body.Close()
		}
		fmt.Printf("failed: %t, crashed at: %q\n", err != nil, crash.Request())
	}
	fmt.Println(counter.Writes())
	// Output:
	// failed: false, crashed at: ""
	// failed: true, crashed at: "POST configmaps"
	// failed: true, crashed at: "POST configmaps"
	// map[POST configmaps:2]
}
