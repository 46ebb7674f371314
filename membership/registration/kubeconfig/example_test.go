package kubeconfig_test

import (
	"fmt"

	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
)

// Clients are created once, and continue to work after a change of the Secret.
func Example() {
	secret := map[string][]byte{
		"server": []byte("https://east.example.com:6443"),
		"token":  []byte("a-bearer-token"),
	}
	access, err := kubeconfig.Parse(secret, "", kubeconfig.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(access)

	live, err := kubeconfig.NewLive(access)
	if err != nil {
		panic(err)
	}
	defer live.Close()
	config, takeBack, err := live.Lend() // for client.New, cluster.New, ...
	if err != nil {
		panic(err)
	}
	defer takeBack()
	fmt.Println(config.Host)

	secret["token"] = []byte("another-bearer-token")
	if access, err = kubeconfig.Parse(secret, "", kubeconfig.Options{}); err != nil {
		panic(err)
	}
	fmt.Println(live.Replace(access))

	// A Secret cannot make the hub run a program or read a file.
	_, err = kubeconfig.Parse(map[string][]byte{"value": []byte(`
apiVersion: v1
kind: Config
current-context: east
contexts: [{name: east, context: {cluster: east, user: hub}}]
clusters: [{name: east, cluster: {server: "https://east.example.com"}}]
users: [{name: hub, user: {tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token}}]
`)}, "", kubeconfig.Options{})
	fmt.Println(err)
	// Output:
	// access to https://east.example.com:6443
	// https://east.example.com:6443
	// <nil>
	// value.user.tokenFile: is not allowed: the hub would read one of its own files; put the content of the file into token
}
