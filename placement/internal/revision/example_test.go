package revision_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/revision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// ExampleStore changes the content of a WorkSet and reverts the change. Then it deletes a revision that exceeds the
// limit.
func ExampleStore() {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).Build() // in a manager: GetClient() and GetAPIReader()
	ctx, store := context.Background(), revision.NewStore(c, c)
	web := &v1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "7b1f"}}

	var current string
	for _, image := range []string{"web:1", "web:2", "web:3", "web:1"} {
		object, err := bundle.Parse(
			fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"image"},"data":{"image":%q}}`, image))
		if err != nil {
			panic(err)
		}
		content := &revision.Content{Objects: []bundle.Object{object}}
		history, err := store.List(ctx, web)
		if err != nil {
			panic(err)
		}
		current = revision.Name(web, content.Hash())
		if len(history) > 0 && history[0].Complete && history[0].Name == current {
			continue
		}
		saved, err := store.Save(ctx, web, content, 0)
		if err != nil {
			panic(err)
		}
		fmt.Println(image, "is number", saved.Number, "and called", saved.Name)
	}

	history, err := store.List(ctx, web)
	if err != nil {
		panic(err)
	}
	inUse := func(name string) bool { return name == current }
	for _, old := range revision.Prune(history, inUse, 1) {
		fmt.Println(old.Name, "is deleted")
		if err := store.Delete(ctx, web, old); err != nil {
			panic(err)
		}
	}
	loaded, err := store.Load(ctx, web, current)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", loaded.Objects[0].JSON)
	// Output:
	// web:1 is number 1 and called web-927e370750be
	// web:2 is number 2 and called web-296d8c402546
	// web:3 is number 3 and called web-167dea7d219c
	// web:1 is number 4 and called web-927e370750be
	// web-296d8c402546 is deleted
	// {"apiVersion":"v1","data":{"image":"web:1"},"kind":"ConfigMap","metadata":{"name":"image"}}
}
