package clusterid_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/internal/clusterid"
)

func ExampleOf() {
	member := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w,
			`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system",`+
				`"uid":"0c7aa5ab-5bd5-4b0f-9a2c-4a2b4d1c8f7e"}}`)
	}))
	defer member.Close()

	id, err := clusterid.Of(context.Background(), &rest.Config{Host: member.URL})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id)
	// Output: 0c7aa5ab-5bd5-4b0f-9a2c-4a2b4d1c8f7e
}
