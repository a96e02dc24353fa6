# direnv
export KUBECONFIG=~/.kube/prod
export AWS_PROFILE="prod"
export  EMPTY=
export A='x y' # note
source_up
PATH_add bin
export B="$(pass show x)"
