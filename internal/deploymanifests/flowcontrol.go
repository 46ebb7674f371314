package main

import (
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// flowControl returns the configuration of API Priority and Fairness for the API server of the hub.
//
// The identities of agents have no common group, because they are users and ServiceAccounts of many namespaces. So the
// FlowSchema selects all authenticated clients, but only their requests for the kinds that agents use. Each client is a
// flow, so an agent that sends many requests delays only itself. Heartbeats are not selected. They never share a queue
// with other requests of agents. Requests of the hub have precedence, as those of the controllers of Kubernetes.
func flowControl() []any {
	const agents = "muster-agents"
	shares, lendable, all := int32(30), int32(50), []string{"*"}
	kinds := func(group string, resources ...string) object {
		return object{"apiGroups": []string{group}, "resources": resources, "verbs": all, "namespaces": all}
	}
	schema := func(name, level string, precedence int32, rules object) object {
		return object{
			"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "FlowSchema", "metadata": hub.metaOf(name, ""),
			"spec": object{
				"matchingPrecedence": precedence, "priorityLevelConfiguration": object{"name": level},
				"distinguisherMethod": object{"type": flowcontrolv1.FlowDistinguisherMethodByUserType},
				"rules":               []any{rules},
			},
		}
	}
	account := object{"kind": rbacv1.ServiceAccountKind,
		"serviceAccount": object{"name": string(hub), "namespace": namespace}}
	return []any{
		object{
			"apiVersion": flowcontrolv1.SchemeGroupVersion.String(), "kind": "PriorityLevelConfiguration",
			"metadata": hub.metaOf(agents, ""),
			"spec": object{"type": flowcontrolv1.PriorityLevelEnablementLimited, "limited": object{
				"nominalConcurrencyShares": shares, "lendablePercent": lendable,
				"limitResponse": object{"type": flowcontrolv1.LimitResponseTypeQueue, "queuing": object{
					"queues": 64, "handSize": 6, "queueLengthLimit": 50,
				}},
			}},
		},
		schema(string(hub), "workload-high", 900, object{
			"subjects": []any{account},
			"resourceRules": []any{object{
				"apiGroups": all, "resources": all, "verbs": all, "namespaces": all, "clusterScope": true,
			}},
		}),
		schema(agents, agents, 1000, object{
			"subjects": []any{object{"kind": rbacv1.GroupKind, "group": object{"name": "system:authenticated"}}},
			"resourceRules": []any{
				kinds("membership.muster.dev", "joinrequests", "memberships", "memberships/status"),
				kinds("work.muster.dev", "works", "works/status"),
			},
		}),
	}
}
