"""Fields of the built-in kinds, all groups but the core group: names, numbers and types.

A line is a struct: its name, then ``number:field:type``. Types: ``s`` string, ``i`` and ``l``
integers of 32 and 64 bits, ``b`` boolean, ``y`` bytes, ``d`` a fraction, or a struct; ``*`` before
it a list, ``{…}`` a map by string, ``^`` fields that JSON shows in the enclosing struct. An
indented line continues. Source: ``generated.proto`` and the ``json`` tags of k8s.io/api v0.36.
"""

TABLE = """
Condition 1:type:s 2:status:s 3:observedGeneration:l 4:lastTransitionTime:Time 5:reason:s 6:message:s
DeleteOptions 1:gracePeriodSeconds:l 2:preconditions:Preconditions 3:orphanDependents:b 4:propagationPolicy:s
 5:dryRun:*s 6:ignoreStoreReadErrorWithClusterBreakingPotential:b
FieldSelectorRequirement 1:key:s 2:operator:s 3:values:*s
LabelSelector 1:matchLabels:{s} 2:matchExpressions:*LabelSelectorRequirement
LabelSelectorRequirement 1:key:s 2:operator:s 3:values:*s
ManagedFieldsEntry 1:manager:s 2:operation:s 3:apiVersion:s 4:time:Time 6:fieldsType:s 7:fieldsV1:FieldsV1
 8:subresource:s
ObjectMeta 1:name:s 2:generateName:s 3:namespace:s 4:selfLink:s 5:uid:s 6:resourceVersion:s 7:generation:l
 8:creationTimestamp:Time 9:deletionTimestamp:Time 10:deletionGracePeriodSeconds:l 11:labels:{s} 12:annotations:{s}
 13:ownerReferences:*OwnerReference 14:finalizers:*s 17:managedFields:*ManagedFieldsEntry
OwnerReference 5:apiVersion:s 1:kind:s 3:name:s 4:uid:s 6:controller:b 7:blockOwnerDeletion:b
Preconditions 1:uid:s 2:resourceVersion:s
apps.ControllerRevision 1:metadata:ObjectMeta 2:data:RawExtension 3:revision:l
apps.DaemonSet 1:metadata:ObjectMeta 2:spec:apps.DaemonSetSpec 3:status:apps.DaemonSetStatus
apps.DaemonSetCondition 1:type:s 2:status:s 3:lastTransitionTime:Time 4:reason:s 5:message:s
apps.DaemonSetSpec 1:selector:LabelSelector 2:template:core.PodTemplateSpec
 3:updateStrategy:apps.DaemonSetUpdateStrategy 4:minReadySeconds:i 6:revisionHistoryLimit:i
apps.DaemonSetStatus 1:currentNumberScheduled:i 2:numberMisscheduled:i 3:desiredNumberScheduled:i 4:numberReady:i
 5:observedGeneration:l 6:updatedNumberScheduled:i 7:numberAvailable:i 8:numberUnavailable:i 9:collisionCount:i
 10:conditions:*apps.DaemonSetCondition
apps.DaemonSetUpdateStrategy 1:type:s 2:rollingUpdate:apps.RollingUpdateDaemonSet
apps.Deployment 1:metadata:ObjectMeta 2:spec:apps.DeploymentSpec 3:status:apps.DeploymentStatus
apps.DeploymentCondition 1:type:s 2:status:s 6:lastUpdateTime:Time 7:lastTransitionTime:Time 4:reason:s 5:message:s
apps.DeploymentSpec 1:replicas:i 2:selector:LabelSelector 3:template:core.PodTemplateSpec
 4:strategy:apps.DeploymentStrategy 5:minReadySeconds:i 6:revisionHistoryLimit:i 7:paused:b
 9:progressDeadlineSeconds:i
apps.DeploymentStatus 1:observedGeneration:l 2:replicas:i 3:updatedReplicas:i 7:readyReplicas:i 4:availableReplicas:i
 5:unavailableReplicas:i 9:terminatingReplicas:i 6:conditions:*apps.DeploymentCondition 8:collisionCount:i
apps.DeploymentStrategy 1:type:s 2:rollingUpdate:apps.RollingUpdateDeployment
apps.ReplicaSet 1:metadata:ObjectMeta 2:spec:apps.ReplicaSetSpec 3:status:apps.ReplicaSetStatus
apps.ReplicaSetCondition 1:type:s 2:status:s 3:lastTransitionTime:Time 4:reason:s 5:message:s
apps.ReplicaSetSpec 1:replicas:i 4:minReadySeconds:i 2:selector:LabelSelector 3:template:core.PodTemplateSpec
apps.ReplicaSetStatus 1:replicas:i 2:fullyLabeledReplicas:i 4:readyReplicas:i 5:availableReplicas:i
 7:terminatingReplicas:i 3:observedGeneration:l 6:conditions:*apps.ReplicaSetCondition
apps.RollingUpdateDaemonSet 1:maxUnavailable:IntOrString 2:maxSurge:IntOrString
apps.RollingUpdateDeployment 1:maxUnavailable:IntOrString 2:maxSurge:IntOrString
apps.RollingUpdateStatefulSetStrategy 1:partition:i 2:maxUnavailable:IntOrString
apps.StatefulSet 1:metadata:ObjectMeta 2:spec:apps.StatefulSetSpec 3:status:apps.StatefulSetStatus
apps.StatefulSetCondition 1:type:s 2:status:s 3:lastTransitionTime:Time 4:reason:s 5:message:s
apps.StatefulSetOrdinals 1:start:i
apps.StatefulSetPersistentVolumeClaimRetentionPolicy 1:whenDeleted:s 2:whenScaled:s
apps.StatefulSetSpec 1:replicas:i 2:selector:LabelSelector 3:template:core.PodTemplateSpec
 4:volumeClaimTemplates:*core.PersistentVolumeClaim 5:serviceName:s 6:podManagementPolicy:s
 7:updateStrategy:apps.StatefulSetUpdateStrategy 8:revisionHistoryLimit:i 9:minReadySeconds:i
 10:persistentVolumeClaimRetentionPolicy:apps.StatefulSetPersistentVolumeClaimRetentionPolicy
 11:ordinals:apps.StatefulSetOrdinals
apps.StatefulSetStatus 1:observedGeneration:l 2:replicas:i 3:readyReplicas:i 4:currentReplicas:i 5:updatedReplicas:i
 6:currentRevision:s 7:updateRevision:s 9:collisionCount:i 10:conditions:*apps.StatefulSetCondition
 11:availableReplicas:i
apps.StatefulSetUpdateStrategy 1:type:s 2:rollingUpdate:apps.RollingUpdateStatefulSetStrategy
authentication.BoundObjectReference 1:kind:s 2:apiVersion:s 3:name:s 4:uid:s
authentication.ExtraValue 1:items:*s
authentication.SelfSubjectReview 1:metadata:ObjectMeta 2:status:authentication.SelfSubjectReviewStatus
authentication.SelfSubjectReviewStatus 1:userInfo:authentication.UserInfo
authentication.TokenRequest 1:metadata:ObjectMeta 2:spec:authentication.TokenRequestSpec
 3:status:authentication.TokenRequestStatus
authentication.TokenRequestSpec 1:audiences:*s 4:expirationSeconds:l
 3:boundObjectRef:authentication.BoundObjectReference
authentication.TokenRequestStatus 1:token:s 2:expirationTimestamp:Time
authentication.UserInfo 1:username:s 2:uid:s 3:groups:*s 4:extra:{authentication.ExtraValue}
authorization.ExtraValue 1:items:*s
authorization.FieldSelectorAttributes 1:rawSelector:s 2:requirements:*FieldSelectorRequirement
authorization.LabelSelectorAttributes 1:rawSelector:s 2:requirements:*LabelSelectorRequirement
authorization.LocalSubjectAccessReview 1:metadata:ObjectMeta 2:spec:authorization.SubjectAccessReviewSpec
 3:status:authorization.SubjectAccessReviewStatus
authorization.NonResourceAttributes 1:path:s 2:verb:s
authorization.ResourceAttributes 1:namespace:s 2:verb:s 3:group:s 4:version:s 5:resource:s 6:subresource:s 7:name:s
 8:fieldSelector:authorization.FieldSelectorAttributes 9:labelSelector:authorization.LabelSelectorAttributes
authorization.SelfSubjectAccessReview 1:metadata:ObjectMeta 2:spec:authorization.SelfSubjectAccessReviewSpec
 3:status:authorization.SubjectAccessReviewStatus
authorization.SelfSubjectAccessReviewSpec 1:resourceAttributes:authorization.ResourceAttributes
 2:nonResourceAttributes:authorization.NonResourceAttributes
authorization.SubjectAccessReview 1:metadata:ObjectMeta 2:spec:authorization.SubjectAccessReviewSpec
 3:status:authorization.SubjectAccessReviewStatus
authorization.SubjectAccessReviewSpec 1:resourceAttributes:authorization.ResourceAttributes
 2:nonResourceAttributes:authorization.NonResourceAttributes 3:user:s 4:groups:*s 5:extra:{authorization.ExtraValue}
 6:uid:s
authorization.SubjectAccessReviewStatus 1:allowed:b 4:denied:b 2:reason:s 3:evaluationError:s
batch.CronJob 1:metadata:ObjectMeta 2:spec:batch.CronJobSpec 3:status:batch.CronJobStatus
batch.CronJobSpec 1:schedule:s 8:timeZone:s 2:startingDeadlineSeconds:l 3:concurrencyPolicy:s 4:suspend:b
 5:jobTemplate:batch.JobTemplateSpec 6:successfulJobsHistoryLimit:i 7:failedJobsHistoryLimit:i
batch.CronJobStatus 1:active:*core.ObjectReference 4:lastScheduleTime:Time 5:lastSuccessfulTime:Time
batch.Job 1:metadata:ObjectMeta 2:spec:batch.JobSpec 3:status:batch.JobStatus
batch.JobCondition 1:type:s 2:status:s 3:lastProbeTime:Time 4:lastTransitionTime:Time 5:reason:s 6:message:s
batch.JobSpec 1:parallelism:i 2:completions:i 3:activeDeadlineSeconds:l 11:podFailurePolicy:batch.PodFailurePolicy
 16:successPolicy:batch.SuccessPolicy 7:backoffLimit:i 12:backoffLimitPerIndex:i 13:maxFailedIndexes:i
 4:selector:LabelSelector 5:manualSelector:b 6:template:core.PodTemplateSpec 8:ttlSecondsAfterFinished:i
 9:completionMode:s 10:suspend:b 14:podReplacementPolicy:s 15:managedBy:s
batch.JobStatus 1:conditions:*batch.JobCondition 2:startTime:Time 3:completionTime:Time 4:active:i 5:succeeded:i
 6:failed:i 11:terminating:i 7:completedIndexes:s 10:failedIndexes:s
 8:uncountedTerminatedPods:batch.UncountedTerminatedPods 9:ready:i
batch.JobTemplateSpec 1:metadata:ObjectMeta 2:spec:batch.JobSpec
batch.PodFailurePolicy 1:rules:*batch.PodFailurePolicyRule
batch.PodFailurePolicyOnExitCodesRequirement 1:containerName:s 2:operator:s 3:values:*i
batch.PodFailurePolicyOnPodConditionsPattern 1:type:s 2:status:s
batch.PodFailurePolicyRule 1:action:s 2:onExitCodes:batch.PodFailurePolicyOnExitCodesRequirement
 3:onPodConditions:*batch.PodFailurePolicyOnPodConditionsPattern
batch.SuccessPolicy 1:rules:*batch.SuccessPolicyRule
batch.SuccessPolicyRule 1:succeededIndexes:s 2:succeededCount:i
batch.UncountedTerminatedPods 1:succeeded:*s 2:failed:*s
coordination.Lease 1:metadata:ObjectMeta 2:spec:coordination.LeaseSpec
coordination.LeaseSpec 1:holderIdentity:s 2:leaseDurationSeconds:i 3:acquireTime:MicroTime 4:renewTime:MicroTime
 5:leaseTransitions:i 6:strategy:s 7:preferredHolder:s
discovery.Endpoint 1:addresses:*s 2:conditions:discovery.EndpointConditions 3:hostname:s
 4:targetRef:core.ObjectReference 5:deprecatedTopology:{s} 6:nodeName:s 7:zone:s 8:hints:discovery.EndpointHints
discovery.EndpointConditions 1:ready:b 2:serving:b 3:terminating:b
discovery.EndpointHints 1:forZones:*discovery.ForZone 2:forNodes:*discovery.ForNode
discovery.EndpointPort 1:name:s 2:protocol:s 3:port:i 4:appProtocol:s
discovery.EndpointSlice 1:metadata:ObjectMeta 4:addressType:s 2:endpoints:*discovery.Endpoint
 3:ports:*discovery.EndpointPort
discovery.ForNode 1:name:s
discovery.ForZone 1:name:s
networking.HTTPIngressPath 1:path:s 3:pathType:s 2:backend:networking.IngressBackend
networking.HTTPIngressRuleValue 1:paths:*networking.HTTPIngressPath
networking.IPBlock 1:cidr:s 2:except:*s
networking.Ingress 1:metadata:ObjectMeta 2:spec:networking.IngressSpec 3:status:networking.IngressStatus
networking.IngressBackend 4:service:networking.IngressServiceBackend 3:resource:core.TypedLocalObjectReference
networking.IngressClass 1:metadata:ObjectMeta 2:spec:networking.IngressClassSpec
networking.IngressClassParametersReference 1:apiGroup:s 2:kind:s 3:name:s 4:scope:s 5:namespace:s
networking.IngressClassSpec 1:controller:s 2:parameters:networking.IngressClassParametersReference
networking.IngressLoadBalancerIngress 1:ip:s 2:hostname:s 4:ports:*networking.IngressPortStatus
networking.IngressLoadBalancerStatus 1:ingress:*networking.IngressLoadBalancerIngress
networking.IngressPortStatus 1:port:i 2:protocol:s 3:error:s
networking.IngressRule 1:host:s 2:ingressRuleValue:^networking.IngressRuleValue
networking.IngressRuleValue 1:http:networking.HTTPIngressRuleValue
networking.IngressServiceBackend 1:name:s 2:port:networking.ServiceBackendPort
networking.IngressSpec 4:ingressClassName:s 1:defaultBackend:networking.IngressBackend 2:tls:*networking.IngressTLS
 3:rules:*networking.IngressRule
networking.IngressStatus 1:loadBalancer:networking.IngressLoadBalancerStatus
networking.IngressTLS 1:hosts:*s 2:secretName:s
networking.NetworkPolicy 1:metadata:ObjectMeta 2:spec:networking.NetworkPolicySpec
networking.NetworkPolicyEgressRule 1:ports:*networking.NetworkPolicyPort 2:to:*networking.NetworkPolicyPeer
networking.NetworkPolicyIngressRule 1:ports:*networking.NetworkPolicyPort 2:from:*networking.NetworkPolicyPeer
networking.NetworkPolicyPeer 1:podSelector:LabelSelector 2:namespaceSelector:LabelSelector
 3:ipBlock:networking.IPBlock
networking.NetworkPolicyPort 1:protocol:s 2:port:IntOrString 3:endPort:i
networking.NetworkPolicySpec 1:podSelector:LabelSelector 2:ingress:*networking.NetworkPolicyIngressRule
 3:egress:*networking.NetworkPolicyEgressRule 4:policyTypes:*s
networking.ServiceBackendPort 1:name:s 2:number:i
node.Overhead 1:podFixed:{Quantity}
node.RuntimeClass 1:metadata:ObjectMeta 2:handler:s 3:overhead:node.Overhead 4:scheduling:node.Scheduling
node.Scheduling 1:nodeSelector:{s} 2:tolerations:*core.Toleration
policy.Eviction 1:metadata:ObjectMeta 2:deleteOptions:DeleteOptions
policy.PodDisruptionBudget 1:metadata:ObjectMeta 2:spec:policy.PodDisruptionBudgetSpec
 3:status:policy.PodDisruptionBudgetStatus
policy.PodDisruptionBudgetSpec 1:minAvailable:IntOrString 2:selector:LabelSelector 3:maxUnavailable:IntOrString
 4:unhealthyPodEvictionPolicy:s
policy.PodDisruptionBudgetStatus 1:observedGeneration:l 2:disruptedPods:{Time} 3:disruptionsAllowed:i
 4:currentHealthy:i 5:desiredHealthy:i 6:expectedPods:i 7:conditions:*Condition
rbac.AggregationRule 1:clusterRoleSelectors:*LabelSelector
rbac.ClusterRole 1:metadata:ObjectMeta 2:rules:*rbac.PolicyRule 3:aggregationRule:rbac.AggregationRule
rbac.ClusterRoleBinding 1:metadata:ObjectMeta 2:subjects:*rbac.Subject 3:roleRef:rbac.RoleRef
rbac.PolicyRule 1:verbs:*s 2:apiGroups:*s 3:resources:*s 4:resourceNames:*s 5:nonResourceURLs:*s
rbac.Role 1:metadata:ObjectMeta 2:rules:*rbac.PolicyRule
rbac.RoleBinding 1:metadata:ObjectMeta 2:subjects:*rbac.Subject 3:roleRef:rbac.RoleRef
rbac.RoleRef 1:apiGroup:s 2:kind:s 3:name:s
rbac.Subject 1:kind:s 2:apiGroup:s 3:name:s 4:namespace:s
scheduling.PriorityClass 1:metadata:ObjectMeta 2:value:i 3:globalDefault:b 4:description:s 5:preemptionPolicy:s
storage.CSIDriver 1:metadata:ObjectMeta 2:spec:storage.CSIDriverSpec
storage.CSIDriverSpec 1:attachRequired:b 2:podInfoOnMount:b 3:volumeLifecycleModes:*s 4:storageCapacity:b
 5:fsGroupPolicy:s 6:tokenRequests:*storage.TokenRequest 7:requiresRepublish:b 8:seLinuxMount:b
 9:nodeAllocatableUpdatePeriodSeconds:l 10:serviceAccountTokenInSecrets:b 11:preventPodSchedulingIfMissing:b
storage.CSINode 1:metadata:ObjectMeta 2:spec:storage.CSINodeSpec
storage.CSINodeDriver 1:name:s 2:nodeID:s 3:topologyKeys:*s 4:allocatable:storage.VolumeNodeResources
storage.CSINodeSpec 1:drivers:*storage.CSINodeDriver
storage.CSIStorageCapacity 1:metadata:ObjectMeta 2:nodeTopology:LabelSelector 3:storageClassName:s 4:capacity:Quantity
 5:maximumVolumeSize:Quantity
storage.StorageClass 1:metadata:ObjectMeta 2:provisioner:s 3:parameters:{s} 4:reclaimPolicy:s 5:mountOptions:*s
 6:allowVolumeExpansion:b 7:volumeBindingMode:s 8:allowedTopologies:*core.TopologySelectorTerm
storage.TokenRequest 1:audience:s 2:expirationSeconds:l
storage.VolumeAttachment 1:metadata:ObjectMeta 2:spec:storage.VolumeAttachmentSpec
 3:status:storage.VolumeAttachmentStatus
storage.VolumeAttachmentSource 1:persistentVolumeName:s 2:inlineVolumeSpec:core.PersistentVolumeSpec
storage.VolumeAttachmentSpec 1:attacher:s 2:source:storage.VolumeAttachmentSource 3:nodeName:s
storage.VolumeAttachmentStatus 1:attached:b 2:attachmentMetadata:{s} 3:attachError:storage.VolumeError
 4:detachError:storage.VolumeError
storage.VolumeAttributesClass 1:metadata:ObjectMeta 2:driverName:s 3:parameters:{s}
storage.VolumeError 1:time:Time 2:message:s 3:errorCode:i
storage.VolumeNodeResources 1:count:i
"""
