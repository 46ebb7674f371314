package jointoken_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A token for one use, which is used up.
func ExampleAdmit() {
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Name: "edge"},
		Spec:       v1alpha1.JoinTokenSpec{MaxUses: new(int32(1))},
		Status:     v1alpha1.JoinTokenStatus{Uses: 1, UsedBy: []string{"east-id"}},
	}
	for _, id := range []string{"east-id", "west-id"} {
		request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{ClusterID: id}}
		fmt.Println(id, jointoken.Admit(token, request))
	}
	// Output:
	// east-id <nil>
	// west-id spec.token.name: JoinToken "edge" is used up: use the join.yaml of another JoinToken
}
