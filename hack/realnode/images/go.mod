module vsyncer.dev/hack/realnode/images

go 1.24
