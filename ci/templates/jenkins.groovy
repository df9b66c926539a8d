// Written by `scankit ci init jenkins`: checks the environment of this repository by the policy in scankit-ci.yaml.
pipeline {
  agent { docker { image '@IMAGE@' } } // or `agent any`, where the first python of PATH has pip
  options { timeout(time: 30, unit: 'MINUTES') }
  triggers { cron('H 4 * * 1') } // an environment changes without a commit
  environment {
    SCANKIT = @GROOVY_SCANKIT@ // the program or its wheel: a path in this repository, or a URL
    SCANKIT_SHA256 = @GROOVY_SHA256@ // a file with another hash is neither installed nor run
  }
  stages {
    stage('scankit') {
      steps {
        sh '''#!/usr/bin/env bash
          set -eo pipefail
          # In a container, Jenkins' user often has no home directory, where pip and uv keep their caches.
          [ -w "${HOME:-/}" ] || HOME=$(mktemp -d)
          export HOME
          rm -rf scankit-results # of an earlier build in this workspace
          @INSTALL_ENVIRONMENT@
          @FETCH_SCANKIT@
          mkdir -p scankit-results
          "$SCANKIT_BIN/scankit" ci run --python "$ENVIRONMENT_PYTHON" --out scankit-results \\
            --report junit=scankit-results/junit.xml --report html=scankit-results/scankit.html
        '''
      }
    }
  }
  post {
    always {
      archiveArtifacts artifacts: 'scankit-results/**', allowEmptyArchive: true
      junit testResults: 'scankit-results/junit.xml', allowEmptyResults: true
    }
  }
}
