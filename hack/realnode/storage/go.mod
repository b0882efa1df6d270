module vsyncer.dev/hack/realnode/storage

go 1.26.7

require (
	github.com/kubernetes-csi/external-provisioner/v6 v6.4.0 // indirect
	github.com/kubernetes-csi/external-snapshotter/v8 v8.7.0 // indirect
)
