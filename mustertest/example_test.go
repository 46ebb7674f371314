package mustertest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/muster-sdk/muster/mustertest"
)

// What a controller asks of an API server, which is played here, until it dies at its second write.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	wire, crash := &mustertest.Wire{}, mustertest.NewCrash(2, mustertest.AnswerLost)
	config := &rest.Config{Host: server.URL, WrapTransport: transport.Wrappers(wire.Over, crash.Over)}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	for range 3 {
		response, err := client.Post(server.URL+"/api/v1/namespaces/shop/configmaps", "application/json", nil)
		if err == nil {
			err = response.Body.Close()
		}
		fmt.Printf("failed: %t, died at: %q\n", err != nil, crash.Happened())
	}
	fmt.Println(wire.Writes())
	// Output:
	// failed: false, died at: ""
	// failed: true, died at: "POST configmaps"
	// failed: true, died at: "POST configmaps"
	// map[POST configmaps:2]
}
