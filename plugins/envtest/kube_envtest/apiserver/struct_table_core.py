"""Fields of the built-in kinds, the core group: names, numbers and types.

A line is a struct: its name, then ``number:field:type``. Types: ``s`` string, ``i`` and ``l``
integers of 32 and 64 bits, ``b`` boolean, ``y`` bytes, ``d`` a fraction, or a struct; ``*`` before
it a list, ``{…}`` a map by string, ``^`` fields that JSON shows in the enclosing struct. An
indented line continues. Source: ``generated.proto`` and the ``json`` tags of k8s.io/api v0.36.
"""

TABLE = """
core.AWSElasticBlockStoreVolumeSource 1:volumeID:s 2:fsType:s 3:partition:i 4:readOnly:b
core.Affinity 1:nodeAffinity:core.NodeAffinity 2:podAffinity:core.PodAffinity 3:podAntiAffinity:core.PodAntiAffinity
core.AppArmorProfile 1:type:s 2:localhostProfile:s
core.AttachedVolume 1:name:s 2:devicePath:s
core.AzureDiskVolumeSource 1:diskName:s 2:diskURI:s 3:cachingMode:s 4:fsType:s 5:readOnly:b 6:kind:s
core.AzureFilePersistentVolumeSource 1:secretName:s 2:shareName:s 3:readOnly:b 4:secretNamespace:s
core.AzureFileVolumeSource 1:secretName:s 2:shareName:s 3:readOnly:b
core.CSIPersistentVolumeSource 1:driver:s 2:volumeHandle:s 3:readOnly:b 4:fsType:s 5:volumeAttributes:{s}
 6:controllerPublishSecretRef:core.SecretReference 7:nodeStageSecretRef:core.SecretReference
 8:nodePublishSecretRef:core.SecretReference 9:controllerExpandSecretRef:core.SecretReference
 10:nodeExpandSecretRef:core.SecretReference
core.CSIVolumeSource 1:driver:s 2:readOnly:b 3:fsType:s 4:volumeAttributes:{s}
 5:nodePublishSecretRef:core.LocalObjectReference
core.Capabilities 1:add:*s 2:drop:*s
core.CephFSPersistentVolumeSource 1:monitors:*s 2:path:s 3:user:s 4:secretFile:s 5:secretRef:core.SecretReference
 6:readOnly:b
core.CephFSVolumeSource 1:monitors:*s 2:path:s 3:user:s 4:secretFile:s 5:secretRef:core.LocalObjectReference
 6:readOnly:b
core.CinderPersistentVolumeSource 1:volumeID:s 2:fsType:s 3:readOnly:b 4:secretRef:core.SecretReference
core.CinderVolumeSource 1:volumeID:s 2:fsType:s 3:readOnly:b 4:secretRef:core.LocalObjectReference
core.ClientIPConfig 1:timeoutSeconds:i
core.ClusterTrustBundleProjection 1:name:s 2:signerName:s 3:labelSelector:LabelSelector 5:optional:b 4:path:s
core.ConfigMap 1:metadata:ObjectMeta 4:immutable:b 2:data:{s} 3:binaryData:{y}
core.ConfigMapEnvSource 1:localObjectReference:^core.LocalObjectReference 2:optional:b
core.ConfigMapKeySelector 1:localObjectReference:^core.LocalObjectReference 2:key:s 3:optional:b
core.ConfigMapNodeConfigSource 1:namespace:s 2:name:s 3:uid:s 4:resourceVersion:s 5:kubeletConfigKey:s
core.ConfigMapProjection 1:localObjectReference:^core.LocalObjectReference 2:items:*core.KeyToPath 4:optional:b
core.ConfigMapVolumeSource 1:localObjectReference:^core.LocalObjectReference 2:items:*core.KeyToPath 3:defaultMode:i
 4:optional:b
core.Container 1:name:s 2:image:s 3:command:*s 4:args:*s 5:workingDir:s 6:ports:*core.ContainerPort
 19:envFrom:*core.EnvFromSource 7:env:*core.EnvVar 8:resources:core.ResourceRequirements
 23:resizePolicy:*core.ContainerResizePolicy 24:restartPolicy:s 25:restartPolicyRules:*core.ContainerRestartRule
 9:volumeMounts:*core.VolumeMount 21:volumeDevices:*core.VolumeDevice 10:livenessProbe:core.Probe
 11:readinessProbe:core.Probe 22:startupProbe:core.Probe 12:lifecycle:core.Lifecycle 13:terminationMessagePath:s
 20:terminationMessagePolicy:s 14:imagePullPolicy:s 15:securityContext:core.SecurityContext 16:stdin:b 17:stdinOnce:b
 18:tty:b
core.ContainerExtendedResourceRequest 1:containerName:s 2:resourceName:s 3:requestName:s
core.ContainerImage 1:names:*s 2:sizeBytes:l
core.ContainerPort 1:name:s 2:hostPort:i 3:containerPort:i 4:protocol:s 5:hostIP:s
core.ContainerResizePolicy 1:resourceName:s 2:restartPolicy:s
core.ContainerRestartRule 1:action:s 2:exitCodes:core.ContainerRestartRuleOnExitCodes
core.ContainerRestartRuleOnExitCodes 1:operator:s 2:values:*i
core.ContainerState 1:waiting:core.ContainerStateWaiting 2:running:core.ContainerStateRunning
 3:terminated:core.ContainerStateTerminated
core.ContainerStateRunning 1:startedAt:Time
core.ContainerStateTerminated 1:exitCode:i 2:signal:i 3:reason:s 4:message:s 5:startedAt:Time 6:finishedAt:Time
 7:containerID:s
core.ContainerStateWaiting 1:reason:s 2:message:s
core.ContainerStatus 1:name:s 2:state:core.ContainerState 3:lastState:core.ContainerState 4:ready:b 5:restartCount:i
 6:image:s 7:imageID:s 8:containerID:s 9:started:b 10:allocatedResources:{Quantity}
 11:resources:core.ResourceRequirements 12:volumeMounts:*core.VolumeMountStatus 13:user:core.ContainerUser
 14:allocatedResourcesStatus:*core.ResourceStatus 15:stopSignal:s
core.ContainerUser 1:linux:core.LinuxContainerUser
core.DaemonEndpoint 1:Port:i
core.DownwardAPIProjection 1:items:*core.DownwardAPIVolumeFile
core.DownwardAPIVolumeFile 1:path:s 2:fieldRef:core.ObjectFieldSelector 3:resourceFieldRef:core.ResourceFieldSelector
 4:mode:i
core.DownwardAPIVolumeSource 1:items:*core.DownwardAPIVolumeFile 2:defaultMode:i
core.EmptyDirVolumeSource 1:medium:s 2:sizeLimit:Quantity
core.EndpointAddress 1:ip:s 3:hostname:s 4:nodeName:s 2:targetRef:core.ObjectReference
core.EndpointPort 1:name:s 2:port:i 3:protocol:s 4:appProtocol:s
core.EndpointSubset 1:addresses:*core.EndpointAddress 2:notReadyAddresses:*core.EndpointAddress
 3:ports:*core.EndpointPort
core.Endpoints 1:metadata:ObjectMeta 2:subsets:*core.EndpointSubset
core.EnvFromSource 1:prefix:s 2:configMapRef:core.ConfigMapEnvSource 3:secretRef:core.SecretEnvSource
core.EnvVar 1:name:s 2:value:s 3:valueFrom:core.EnvVarSource
core.EnvVarSource 1:fieldRef:core.ObjectFieldSelector 2:resourceFieldRef:core.ResourceFieldSelector
 3:configMapKeyRef:core.ConfigMapKeySelector 4:secretKeyRef:core.SecretKeySelector 5:fileKeyRef:core.FileKeySelector
core.EphemeralContainer 1:ephemeralContainerCommon:^core.EphemeralContainerCommon 2:targetContainerName:s
core.EphemeralContainerCommon 1:name:s 2:image:s 3:command:*s 4:args:*s 5:workingDir:s 6:ports:*core.ContainerPort
 19:envFrom:*core.EnvFromSource 7:env:*core.EnvVar 8:resources:core.ResourceRequirements
 23:resizePolicy:*core.ContainerResizePolicy 24:restartPolicy:s 25:restartPolicyRules:*core.ContainerRestartRule
 9:volumeMounts:*core.VolumeMount 21:volumeDevices:*core.VolumeDevice 10:livenessProbe:core.Probe
 11:readinessProbe:core.Probe 22:startupProbe:core.Probe 12:lifecycle:core.Lifecycle 13:terminationMessagePath:s
 20:terminationMessagePolicy:s 14:imagePullPolicy:s 15:securityContext:core.SecurityContext 16:stdin:b 17:stdinOnce:b
 18:tty:b
core.EphemeralVolumeSource 1:volumeClaimTemplate:core.PersistentVolumeClaimTemplate
core.Event 1:metadata:ObjectMeta 2:involvedObject:core.ObjectReference 3:reason:s 4:message:s
 5:source:core.EventSource 6:firstTimestamp:Time 7:lastTimestamp:Time 8:count:i 9:type:s 10:eventTime:MicroTime
 11:series:core.EventSeries 12:action:s 13:related:core.ObjectReference 14:reportingComponent:s 15:reportingInstance:s
core.EventSeries 1:count:i 2:lastObservedTime:MicroTime
core.EventSource 1:component:s 2:host:s
core.ExecAction 1:command:*s
core.FCVolumeSource 1:targetWWNs:*s 2:lun:i 3:fsType:s 4:readOnly:b 5:wwids:*s
core.FileKeySelector 1:volumeName:s 2:path:s 3:key:s 4:optional:b
core.FlexPersistentVolumeSource 1:driver:s 2:fsType:s 3:secretRef:core.SecretReference 4:readOnly:b 5:options:{s}
core.FlexVolumeSource 1:driver:s 2:fsType:s 3:secretRef:core.LocalObjectReference 4:readOnly:b 5:options:{s}
core.FlockerVolumeSource 1:datasetName:s 2:datasetUUID:s
core.GCEPersistentDiskVolumeSource 1:pdName:s 2:fsType:s 3:partition:i 4:readOnly:b
core.GRPCAction 1:port:i 2:service:s
core.GitRepoVolumeSource 1:repository:s 2:revision:s 3:directory:s
core.GlusterfsPersistentVolumeSource 1:endpoints:s 2:path:s 3:readOnly:b 4:endpointsNamespace:s
core.GlusterfsVolumeSource 1:endpoints:s 2:path:s 3:readOnly:b
core.HTTPGetAction 1:path:s 2:port:IntOrString 3:host:s 4:scheme:s 5:httpHeaders:*core.HTTPHeader
core.HTTPHeader 1:name:s 2:value:s
core.HostAlias 1:ip:s 2:hostnames:*s
core.HostIP 1:ip:s
core.HostPathVolumeSource 1:path:s 2:type:s
core.ISCSIPersistentVolumeSource 1:targetPortal:s 2:iqn:s 3:lun:i 4:iscsiInterface:s 5:fsType:s 6:readOnly:b
 7:portals:*s 8:chapAuthDiscovery:b 11:chapAuthSession:b 10:secretRef:core.SecretReference 12:initiatorName:s
core.ISCSIVolumeSource 1:targetPortal:s 2:iqn:s 3:lun:i 4:iscsiInterface:s 5:fsType:s 6:readOnly:b 7:portals:*s
 8:chapAuthDiscovery:b 11:chapAuthSession:b 10:secretRef:core.LocalObjectReference 12:initiatorName:s
core.ImageVolumeSource 1:reference:s 2:pullPolicy:s
core.ImageVolumeStatus 1:imageRef:s
core.KeyToPath 1:key:s 2:path:s 3:mode:i
core.Lifecycle 1:postStart:core.LifecycleHandler 2:preStop:core.LifecycleHandler 3:stopSignal:s
core.LifecycleHandler 1:exec:core.ExecAction 2:httpGet:core.HTTPGetAction 3:tcpSocket:core.TCPSocketAction
 4:sleep:core.SleepAction
core.LimitRange 1:metadata:ObjectMeta 2:spec:core.LimitRangeSpec
core.LimitRangeItem 1:type:s 2:max:{Quantity} 3:min:{Quantity} 4:default:{Quantity} 5:defaultRequest:{Quantity}
 6:maxLimitRequestRatio:{Quantity}
core.LimitRangeSpec 1:limits:*core.LimitRangeItem
core.LinuxContainerUser 1:uid:l 2:gid:l 3:supplementalGroups:*l
core.LoadBalancerIngress 1:ip:s 2:hostname:s 3:ipMode:s 4:ports:*core.PortStatus
core.LoadBalancerStatus 1:ingress:*core.LoadBalancerIngress
core.LocalObjectReference 1:name:s
core.LocalVolumeSource 1:path:s 2:fsType:s
core.ModifyVolumeStatus 1:targetVolumeAttributesClassName:s 2:status:s
core.NFSVolumeSource 1:server:s 2:path:s 3:readOnly:b
core.Namespace 1:metadata:ObjectMeta 2:spec:core.NamespaceSpec 3:status:core.NamespaceStatus
core.NamespaceCondition 1:type:s 2:status:s 4:lastTransitionTime:Time 5:reason:s 6:message:s
core.NamespaceSpec 1:finalizers:*s
core.NamespaceStatus 1:phase:s 2:conditions:*core.NamespaceCondition
core.Node 1:metadata:ObjectMeta 2:spec:core.NodeSpec 3:status:core.NodeStatus
core.NodeAddress 1:type:s 2:address:s
core.NodeAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:core.NodeSelector
 2:preferredDuringSchedulingIgnoredDuringExecution:*core.PreferredSchedulingTerm
core.NodeAllocatableResourceClaimStatus 1:resourceClaimName:s 2:containers:*s 3:resources:{Quantity}
core.NodeCondition 1:type:s 2:status:s 3:lastHeartbeatTime:Time 4:lastTransitionTime:Time 5:reason:s 6:message:s
core.NodeConfigSource 2:configMap:core.ConfigMapNodeConfigSource
core.NodeConfigStatus 1:assigned:core.NodeConfigSource 2:active:core.NodeConfigSource
 3:lastKnownGood:core.NodeConfigSource 4:error:s
core.NodeDaemonEndpoints 1:kubeletEndpoint:core.DaemonEndpoint
core.NodeFeatures 1:supplementalGroupsPolicy:b
core.NodeRuntimeHandler 1:name:s 2:features:core.NodeRuntimeHandlerFeatures
core.NodeRuntimeHandlerFeatures 1:recursiveReadOnlyMounts:b 2:userNamespaces:b
core.NodeSelector 1:nodeSelectorTerms:*core.NodeSelectorTerm
core.NodeSelectorRequirement 1:key:s 2:operator:s 3:values:*s
core.NodeSelectorTerm 1:matchExpressions:*core.NodeSelectorRequirement 2:matchFields:*core.NodeSelectorRequirement
core.NodeSpec 1:podCIDR:s 7:podCIDRs:*s 3:providerID:s 4:unschedulable:b 5:taints:*core.Taint
 6:configSource:core.NodeConfigSource 2:externalID:s
core.NodeStatus 1:capacity:{Quantity} 2:allocatable:{Quantity} 3:phase:s 4:conditions:*core.NodeCondition
 5:addresses:*core.NodeAddress 6:daemonEndpoints:core.NodeDaemonEndpoints 7:nodeInfo:core.NodeSystemInfo
 8:images:*core.ContainerImage 9:volumesInUse:*s 10:volumesAttached:*core.AttachedVolume
 11:config:core.NodeConfigStatus 12:runtimeHandlers:*core.NodeRuntimeHandler 13:features:core.NodeFeatures
 14:declaredFeatures:*s
core.NodeSwapStatus 1:capacity:l
core.NodeSystemInfo 1:machineID:s 2:systemUUID:s 3:bootID:s 4:kernelVersion:s 5:osImage:s 6:containerRuntimeVersion:s
 7:kubeletVersion:s 8:kubeProxyVersion:s 9:operatingSystem:s 10:architecture:s 11:swap:core.NodeSwapStatus
core.ObjectFieldSelector 1:apiVersion:s 2:fieldPath:s
core.ObjectReference 1:kind:s 2:namespace:s 3:name:s 4:uid:s 5:apiVersion:s 6:resourceVersion:s 7:fieldPath:s
core.PersistentVolume 1:metadata:ObjectMeta 2:spec:core.PersistentVolumeSpec 3:status:core.PersistentVolumeStatus
core.PersistentVolumeClaim 1:metadata:ObjectMeta 2:spec:core.PersistentVolumeClaimSpec
 3:status:core.PersistentVolumeClaimStatus
core.PersistentVolumeClaimCondition 1:type:s 2:status:s 3:lastProbeTime:Time 4:lastTransitionTime:Time 5:reason:s
 6:message:s
core.PersistentVolumeClaimSpec 1:accessModes:*s 4:selector:LabelSelector 2:resources:core.VolumeResourceRequirements
 3:volumeName:s 5:storageClassName:s 6:volumeMode:s 7:dataSource:core.TypedLocalObjectReference
 8:dataSourceRef:core.TypedObjectReference 9:volumeAttributesClassName:s
core.PersistentVolumeClaimStatus 1:phase:s 2:accessModes:*s 3:capacity:{Quantity}
 4:conditions:*core.PersistentVolumeClaimCondition 5:allocatedResources:{Quantity} 7:allocatedResourceStatuses:{s}
 8:currentVolumeAttributesClassName:s 9:modifyVolumeStatus:core.ModifyVolumeStatus
core.PersistentVolumeClaimTemplate 1:metadata:ObjectMeta 2:spec:core.PersistentVolumeClaimSpec
core.PersistentVolumeClaimVolumeSource 1:claimName:s 2:readOnly:b
core.PersistentVolumeSource 1:gcePersistentDisk:core.GCEPersistentDiskVolumeSource
 2:awsElasticBlockStore:core.AWSElasticBlockStoreVolumeSource 3:hostPath:core.HostPathVolumeSource
 4:glusterfs:core.GlusterfsPersistentVolumeSource 5:nfs:core.NFSVolumeSource 6:rbd:core.RBDPersistentVolumeSource
 7:iscsi:core.ISCSIPersistentVolumeSource 8:cinder:core.CinderPersistentVolumeSource
 9:cephfs:core.CephFSPersistentVolumeSource 10:fc:core.FCVolumeSource 11:flocker:core.FlockerVolumeSource
 12:flexVolume:core.FlexPersistentVolumeSource 13:azureFile:core.AzureFilePersistentVolumeSource
 14:vsphereVolume:core.VsphereVirtualDiskVolumeSource 15:quobyte:core.QuobyteVolumeSource
 16:azureDisk:core.AzureDiskVolumeSource 17:photonPersistentDisk:core.PhotonPersistentDiskVolumeSource
 18:portworxVolume:core.PortworxVolumeSource 19:scaleIO:core.ScaleIOPersistentVolumeSource
 20:local:core.LocalVolumeSource 21:storageos:core.StorageOSPersistentVolumeSource
 22:csi:core.CSIPersistentVolumeSource
core.PersistentVolumeSpec 1:capacity:{Quantity} 2:persistentVolumeSource:^core.PersistentVolumeSource 3:accessModes:*s
 4:claimRef:core.ObjectReference 5:persistentVolumeReclaimPolicy:s 6:storageClassName:s 7:mountOptions:*s
 8:volumeMode:s 9:nodeAffinity:core.VolumeNodeAffinity 10:volumeAttributesClassName:s
core.PersistentVolumeStatus 1:phase:s 2:message:s 3:reason:s 4:lastPhaseTransitionTime:Time
core.PhotonPersistentDiskVolumeSource 1:pdID:s 2:fsType:s
core.Pod 1:metadata:ObjectMeta 2:spec:core.PodSpec 3:status:core.PodStatus
core.PodAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:*core.PodAffinityTerm
 2:preferredDuringSchedulingIgnoredDuringExecution:*core.WeightedPodAffinityTerm
core.PodAffinityTerm 1:labelSelector:LabelSelector 2:namespaces:*s 3:topologyKey:s 4:namespaceSelector:LabelSelector
 5:matchLabelKeys:*s 6:mismatchLabelKeys:*s
core.PodAntiAffinity 1:requiredDuringSchedulingIgnoredDuringExecution:*core.PodAffinityTerm
 2:preferredDuringSchedulingIgnoredDuringExecution:*core.WeightedPodAffinityTerm
core.PodCertificateProjection 1:signerName:s 2:keyType:s 3:maxExpirationSeconds:i 4:credentialBundlePath:s 5:keyPath:s
 6:certificateChainPath:s 7:userAnnotations:{s}
core.PodCondition 1:type:s 7:observedGeneration:l 2:status:s 3:lastProbeTime:Time 4:lastTransitionTime:Time 5:reason:s
 6:message:s
core.PodDNSConfig 1:nameservers:*s 2:searches:*s 3:options:*core.PodDNSConfigOption
core.PodDNSConfigOption 1:name:s 2:value:s
core.PodExtendedResourceClaimStatus 1:requestMappings:*core.ContainerExtendedResourceRequest 2:resourceClaimName:s
core.PodIP 1:ip:s
core.PodOS 1:name:s
core.PodReadinessGate 1:conditionType:s
core.PodResourceClaim 1:name:s 3:resourceClaimName:s 4:resourceClaimTemplateName:s
core.PodResourceClaimStatus 1:name:s 2:resourceClaimName:s
core.PodSchedulingGate 1:name:s
core.PodSchedulingGroup 1:podGroupName:s
core.PodSecurityContext 1:seLinuxOptions:core.SELinuxOptions 8:windowsOptions:core.WindowsSecurityContextOptions
 2:runAsUser:l 6:runAsGroup:l 3:runAsNonRoot:b 4:supplementalGroups:*l 12:supplementalGroupsPolicy:s 5:fsGroup:l
 7:sysctls:*core.Sysctl 9:fsGroupChangePolicy:s 10:seccompProfile:core.SeccompProfile
 11:appArmorProfile:core.AppArmorProfile 13:seLinuxChangePolicy:s
core.PodSpec 1:volumes:*core.Volume 20:initContainers:*core.Container 2:containers:*core.Container
 34:ephemeralContainers:*core.EphemeralContainer 3:restartPolicy:s 4:terminationGracePeriodSeconds:l
 5:activeDeadlineSeconds:l 6:dnsPolicy:s 7:nodeSelector:{s} 8:serviceAccountName:s 9:serviceAccount:s
 21:automountServiceAccountToken:b 10:nodeName:s 11:hostNetwork:b 12:hostPID:b 13:hostIPC:b 27:shareProcessNamespace:b
 14:securityContext:core.PodSecurityContext 15:imagePullSecrets:*core.LocalObjectReference 16:hostname:s
 17:subdomain:s 18:affinity:core.Affinity 19:schedulerName:s 22:tolerations:*core.Toleration
 23:hostAliases:*core.HostAlias 24:priorityClassName:s 25:priority:i 26:dnsConfig:core.PodDNSConfig
 28:readinessGates:*core.PodReadinessGate 29:runtimeClassName:s 30:enableServiceLinks:b 31:preemptionPolicy:s
 32:overhead:{Quantity} 33:topologySpreadConstraints:*core.TopologySpreadConstraint 35:setHostnameAsFQDN:b
 36:os:core.PodOS 37:hostUsers:b 38:schedulingGates:*core.PodSchedulingGate 39:resourceClaims:*core.PodResourceClaim
 40:resources:core.ResourceRequirements 41:hostnameOverride:s 43:schedulingGroup:core.PodSchedulingGroup
core.PodStatus 17:observedGeneration:l 1:phase:s 2:conditions:*core.PodCondition 3:message:s 4:reason:s
 11:nominatedNodeName:s 5:hostIP:s 16:hostIPs:*core.HostIP 6:podIP:s 12:podIPs:*core.PodIP 7:startTime:Time
 10:initContainerStatuses:*core.ContainerStatus 8:containerStatuses:*core.ContainerStatus 9:qosClass:s
 13:ephemeralContainerStatuses:*core.ContainerStatus 14:resize:s 15:resourceClaimStatuses:*core.PodResourceClaimStatus
 18:extendedResourceClaimStatus:core.PodExtendedResourceClaimStatus 19:allocatedResources:{Quantity}
 20:resources:core.ResourceRequirements
 21:nodeAllocatableResourceClaimStatuses:*core.NodeAllocatableResourceClaimStatus
core.PodTemplateSpec 1:metadata:ObjectMeta 2:spec:core.PodSpec
core.PortStatus 1:port:i 2:protocol:s 3:error:s
core.PortworxVolumeSource 1:volumeID:s 2:fsType:s 3:readOnly:b
core.PreferredSchedulingTerm 1:weight:i 2:preference:core.NodeSelectorTerm
core.Probe 1:handler:^core.ProbeHandler 2:initialDelaySeconds:i 3:timeoutSeconds:i 4:periodSeconds:i
 5:successThreshold:i 6:failureThreshold:i 7:terminationGracePeriodSeconds:l
core.ProbeHandler 1:exec:core.ExecAction 2:httpGet:core.HTTPGetAction 3:tcpSocket:core.TCPSocketAction
 4:grpc:core.GRPCAction
core.ProjectedVolumeSource 1:sources:*core.VolumeProjection 2:defaultMode:i
core.QuobyteVolumeSource 1:registry:s 2:volume:s 3:readOnly:b 4:user:s 5:group:s 6:tenant:s
core.RBDPersistentVolumeSource 1:monitors:*s 2:image:s 3:fsType:s 4:pool:s 5:user:s 6:keyring:s
 7:secretRef:core.SecretReference 8:readOnly:b
core.RBDVolumeSource 1:monitors:*s 2:image:s 3:fsType:s 4:pool:s 5:user:s 6:keyring:s
 7:secretRef:core.LocalObjectReference 8:readOnly:b
core.ResourceClaim 1:name:s 2:request:s
core.ResourceFieldSelector 1:containerName:s 2:resource:s 3:divisor:Quantity
core.ResourceHealth 1:resourceID:s 2:health:s 6:message:s
core.ResourceQuota 1:metadata:ObjectMeta 2:spec:core.ResourceQuotaSpec 3:status:core.ResourceQuotaStatus
core.ResourceQuotaSpec 1:hard:{Quantity} 2:scopes:*s 3:scopeSelector:core.ScopeSelector
core.ResourceQuotaStatus 1:hard:{Quantity} 2:used:{Quantity}
core.ResourceRequirements 1:limits:{Quantity} 2:requests:{Quantity} 3:claims:*core.ResourceClaim
core.ResourceStatus 1:name:s 2:resources:*core.ResourceHealth
core.SELinuxOptions 1:user:s 2:role:s 3:type:s 4:level:s
core.ScaleIOPersistentVolumeSource 1:gateway:s 2:system:s 3:secretRef:core.SecretReference 4:sslEnabled:b
 5:protectionDomain:s 6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b
core.ScaleIOVolumeSource 1:gateway:s 2:system:s 3:secretRef:core.LocalObjectReference 4:sslEnabled:b
 5:protectionDomain:s 6:storagePool:s 7:storageMode:s 8:volumeName:s 9:fsType:s 10:readOnly:b
core.ScopeSelector 1:matchExpressions:*core.ScopedResourceSelectorRequirement
core.ScopedResourceSelectorRequirement 1:scopeName:s 2:operator:s 3:values:*s
core.SeccompProfile 1:type:s 2:localhostProfile:s
core.Secret 1:metadata:ObjectMeta 5:immutable:b 2:data:{y} 4:stringData:{s} 3:type:s
core.SecretEnvSource 1:localObjectReference:^core.LocalObjectReference 2:optional:b
core.SecretKeySelector 1:localObjectReference:^core.LocalObjectReference 2:key:s 3:optional:b
core.SecretProjection 1:localObjectReference:^core.LocalObjectReference 2:items:*core.KeyToPath 4:optional:b
core.SecretReference 1:name:s 2:namespace:s
core.SecretVolumeSource 1:secretName:s 2:items:*core.KeyToPath 3:defaultMode:i 4:optional:b
core.SecurityContext 1:capabilities:core.Capabilities 2:privileged:b 3:seLinuxOptions:core.SELinuxOptions
 10:windowsOptions:core.WindowsSecurityContextOptions 4:runAsUser:l 8:runAsGroup:l 5:runAsNonRoot:b
 6:readOnlyRootFilesystem:b 7:allowPrivilegeEscalation:b 9:procMount:s 11:seccompProfile:core.SeccompProfile
 12:appArmorProfile:core.AppArmorProfile
core.Service 1:metadata:ObjectMeta 2:spec:core.ServiceSpec 3:status:core.ServiceStatus
core.ServiceAccount 1:metadata:ObjectMeta 2:secrets:*core.ObjectReference
 3:imagePullSecrets:*core.LocalObjectReference 4:automountServiceAccountToken:b
core.ServiceAccountTokenProjection 1:audience:s 2:expirationSeconds:l 3:path:s
core.ServicePort 1:name:s 2:protocol:s 6:appProtocol:s 3:port:i 4:targetPort:IntOrString 5:nodePort:i
core.ServiceSpec 1:ports:*core.ServicePort 2:selector:{s} 3:clusterIP:s 18:clusterIPs:*s 4:type:s 5:externalIPs:*s
 7:sessionAffinity:s 8:loadBalancerIP:s 9:loadBalancerSourceRanges:*s 10:externalName:s 11:externalTrafficPolicy:s
 12:healthCheckNodePort:i 13:publishNotReadyAddresses:b 14:sessionAffinityConfig:core.SessionAffinityConfig
 19:ipFamilies:*s 17:ipFamilyPolicy:s 20:allocateLoadBalancerNodePorts:b 21:loadBalancerClass:s
 22:internalTrafficPolicy:s 23:trafficDistribution:s
core.ServiceStatus 1:loadBalancer:core.LoadBalancerStatus 2:conditions:*Condition
core.SessionAffinityConfig 1:clientIP:core.ClientIPConfig
core.SleepAction 1:seconds:l
core.StorageOSPersistentVolumeSource 1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b
 5:secretRef:core.ObjectReference
core.StorageOSVolumeSource 1:volumeName:s 2:volumeNamespace:s 3:fsType:s 4:readOnly:b
 5:secretRef:core.LocalObjectReference
core.Sysctl 1:name:s 2:value:s
core.TCPSocketAction 1:port:IntOrString 2:host:s
core.Taint 1:key:s 2:value:s 3:effect:s 4:timeAdded:Time
core.Toleration 1:key:s 2:operator:s 3:value:s 4:effect:s 5:tolerationSeconds:l
core.TopologySelectorLabelRequirement 1:key:s 2:values:*s
core.TopologySelectorTerm 1:matchLabelExpressions:*core.TopologySelectorLabelRequirement
core.TopologySpreadConstraint 1:maxSkew:i 2:topologyKey:s 3:whenUnsatisfiable:s 4:labelSelector:LabelSelector
 5:minDomains:i 6:nodeAffinityPolicy:s 7:nodeTaintsPolicy:s 8:matchLabelKeys:*s
core.TypedLocalObjectReference 1:apiGroup:s 2:kind:s 3:name:s
core.TypedObjectReference 1:apiGroup:s 2:kind:s 3:name:s 4:namespace:s
core.Volume 1:name:s 2:volumeSource:^core.VolumeSource
core.VolumeDevice 1:name:s 2:devicePath:s
core.VolumeMount 1:name:s 2:readOnly:b 7:recursiveReadOnly:s 3:mountPath:s 4:subPath:s 5:mountPropagation:s
 6:subPathExpr:s
core.VolumeMountStatus 1:name:s 2:mountPath:s 3:readOnly:b 4:recursiveReadOnly:s 5:volumeStatus:core.VolumeStatus
core.VolumeNodeAffinity 1:required:core.NodeSelector
core.VolumeProjection 1:secret:core.SecretProjection 2:downwardAPI:core.DownwardAPIProjection
 3:configMap:core.ConfigMapProjection 4:serviceAccountToken:core.ServiceAccountTokenProjection
 5:clusterTrustBundle:core.ClusterTrustBundleProjection 6:podCertificate:core.PodCertificateProjection
core.VolumeResourceRequirements 1:limits:{Quantity} 2:requests:{Quantity}
core.VolumeSource 1:hostPath:core.HostPathVolumeSource 2:emptyDir:core.EmptyDirVolumeSource
 3:gcePersistentDisk:core.GCEPersistentDiskVolumeSource 4:awsElasticBlockStore:core.AWSElasticBlockStoreVolumeSource
 5:gitRepo:core.GitRepoVolumeSource 6:secret:core.SecretVolumeSource 7:nfs:core.NFSVolumeSource
 8:iscsi:core.ISCSIVolumeSource 9:glusterfs:core.GlusterfsVolumeSource
 10:persistentVolumeClaim:core.PersistentVolumeClaimVolumeSource 11:rbd:core.RBDVolumeSource
 12:flexVolume:core.FlexVolumeSource 13:cinder:core.CinderVolumeSource 14:cephfs:core.CephFSVolumeSource
 15:flocker:core.FlockerVolumeSource 16:downwardAPI:core.DownwardAPIVolumeSource 17:fc:core.FCVolumeSource
 18:azureFile:core.AzureFileVolumeSource 19:configMap:core.ConfigMapVolumeSource
 20:vsphereVolume:core.VsphereVirtualDiskVolumeSource 21:quobyte:core.QuobyteVolumeSource
 22:azureDisk:core.AzureDiskVolumeSource 23:photonPersistentDisk:core.PhotonPersistentDiskVolumeSource
 26:projected:core.ProjectedVolumeSource 24:portworxVolume:core.PortworxVolumeSource
 25:scaleIO:core.ScaleIOVolumeSource 27:storageos:core.StorageOSVolumeSource 28:csi:core.CSIVolumeSource
 29:ephemeral:core.EphemeralVolumeSource 30:image:core.ImageVolumeSource
core.VolumeStatus 1:image:core.ImageVolumeStatus
core.VsphereVirtualDiskVolumeSource 1:volumePath:s 2:fsType:s 3:storagePolicyName:s 4:storagePolicyID:s
core.WeightedPodAffinityTerm 1:weight:i 2:podAffinityTerm:core.PodAffinityTerm
core.WindowsSecurityContextOptions 1:gmsaCredentialSpecName:s 2:gmsaCredentialSpec:s 3:runAsUserName:s 4:hostProcess:b
"""
