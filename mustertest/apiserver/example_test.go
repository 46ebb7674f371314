package apiserver_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest/apiserver"
)

// Example deletes an owner. The garbage collector then deletes the dependents of the owner.
func Example() {
	ctx := context.Background()
	s, err := apiserver.New(apiserver.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	c, err := client.New(s.Admin(), client.Options{})
	if err != nil {
		panic(err)
	}
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
	if err := c.Create(ctx, owner); err != nil {
		panic(err)
	}
	owned := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owned",
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID},
		}}}
	if err := c.Create(ctx, owned); err != nil {
		panic(err)
	}
	if err := c.Delete(ctx, owner); err != nil {
		panic(err)
	}
	s.Settle()
	fmt.Println(c.Get(ctx, client.ObjectKeyFromObject(owned), owned))
	// Output: secrets "owned" not found
}
