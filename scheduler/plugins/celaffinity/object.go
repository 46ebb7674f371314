package celaffinity

import (
	"fmt"
	"reflect"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// object is a cluster or a taint. Expressions can only read its fields and compare it for identity.
type object struct {
	native any
	is     *types.Type
}

func (o object) ConvertToNative(to reflect.Type) (any, error) {
	if reflect.TypeOf(o.native).AssignableTo(to) {
		return o.native, nil
	}
	return nil, fmt.Errorf("%s cannot become %s", o.is, to)
}

func (o object) ConvertToType(to ref.Type) ref.Val { return convert(o, to) }

func (o object) Equal(other ref.Val) ref.Val { return types.Bool(other.Value() == o.native) }

func (o object) Type() ref.Type { return o.is }

func (o object) Value() any { return o.native }

// convert implements type(value), which is the only supported conversion besides the identity.
func convert(v ref.Val, to ref.Type) ref.Val {
	switch to {
	case types.TypeType:
		return v.Type().(*types.Type)
	case v.Type():
		return v
	}
	return types.NewErr("%s cannot become %s", v.Type().TypeName(), to.TypeName())
}
