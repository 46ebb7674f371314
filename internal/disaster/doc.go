// Package disaster contains tests that restore, partition and replace a hub of a member with workloads, and check that
// no object on the member was deleted or created again. The package contains tests only.
//
// Each test runs a complete hub (package assembly) with the permissions of the shipped roles, a complete agent, and a
// member. The member has a namespace, a Deployment, a ConfigMap and a bound PersistentVolumeClaim from a WorkSet, an
// add-on, a hand-written Work, and data that the application wrote. A watch on the member records every deletion.
package disaster
